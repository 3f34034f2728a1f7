import { Menu } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { OpenMenu } from "./OpenMenu";
import type { MenuOf } from "./useMenu";
import type { UserMenuProps } from "./UserMenu";

export function UserMenuItems({ person, role, session, onSecurity, menu }: UserMenuProps & { readonly menu: MenuOf }) {
  const { t } = useTranslation();
  return (
    <OpenMenu of={menu} position="bottom-end" width={240}>
      <Menu.Label>
        {person.name} · {role}
        <br />
        {person.email}
      </Menu.Label>
      {onSecurity !== undefined && <Menu.Item onClick={onSecurity}>{t("security.title")}</Menu.Item>}
      <Menu.Item onClick={() => void session.end()}>{t("user.signOut")}</Menu.Item>
    </OpenMenu>
  );
}
