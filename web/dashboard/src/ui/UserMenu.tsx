import { Menu, UnstyledButton } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { Session } from "../api/session";

import styles from "./UserMenu.module.css";

interface UserMenuProps {
  readonly person: { readonly name: string; readonly email: string };
  readonly role: string;
  readonly session: Session;
  /** Leads to how one signs in, where the navigation does not. */
  readonly onSecurity?: () => void;
}

/** Who is signed in, as what, and how to leave. */
export function UserMenu({ person, role, session, onSecurity }: UserMenuProps) {
  const { t } = useTranslation();
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <UnstyledButton className={styles.user} aria-label={t("user.menu", { name: person.name })}>
          <span aria-hidden>{Array.from(person.name)[0]?.toLocaleUpperCase()}</span>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {person.name} · {role}
          <br />
          {person.email}
        </Menu.Label>
        {onSecurity !== undefined && <Menu.Item onClick={onSecurity}>{t("security.title")}</Menu.Item>}
        <Menu.Item onClick={() => void session.end()}>{t("user.signOut")}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
