import { Button } from "@mantine/core";
import { useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";

import type { Session } from "../api/session";

import { ErrorNote } from "./Feedback";
import styles from "./StillSignedIn.module.css";

/** Says that signing out failed: whoever takes the page for signed out would leave it to the next at this computer. */
export function StillSignedIn({ session }: { readonly session: Session }) {
  const { t } = useTranslation();
  const why = useSyncExternalStore(session.subscribe, session.notEnded);
  if (why === null) return null;
  return (
    <div className={styles.still}>
      <p role="alert">
        <b>{t("user.stillSignedIn")}</b>
      </p>
      <ErrorNote error={why} />
      <div className="row">
        <Button size="compact-sm" onClick={() => void session.end()}>
          {t("user.signOut")}
        </Button>
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => {
            session.stay();
          }}
        >
          {t("user.stay")}
        </Button>
      </div>
    </div>
  );
}
