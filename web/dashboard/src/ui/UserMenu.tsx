import { UnstyledButton } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { Session } from "../api/session";

import { onDemand } from "./onDemand";
import { useMenu } from "./useMenu";
import styles from "./UserMenu.module.css";

const Items = onDemand(async () => (await import("./UserMenuItems")).UserMenuItems);

export interface UserMenuProps {
  readonly person: { readonly name: string; readonly email: string };
  readonly role: string;
  readonly session: Session;
  /** Leads to how one signs in, where the navigation does not. */
  readonly onSecurity?: () => void;
}

/** Who is signed in, as what, and how to leave. */
export function UserMenu(props: UserMenuProps) {
  const { t } = useTranslation();
  const { button, menu } = useMenu();
  return (
    <>
      <UnstyledButton {...button} className={styles.user} aria-label={t("user.menu", { name: props.person.name })}>
        <span aria-hidden>{Array.from(props.person.name)[0]?.toLocaleUpperCase()}</span>
      </UnstyledButton>
      {menu !== null && <Items {...props} menu={menu} />}
    </>
  );
}
