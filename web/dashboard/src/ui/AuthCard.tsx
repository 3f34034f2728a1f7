import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { Page } from "./Page";
import { Preferences } from "./Preferences";

import styles from "./AuthCard.module.css";

interface AuthCardProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly foot?: ReactNode;
  /** Whether people are here as their session has ended, which is said. */
  readonly hasEnded?: boolean;
  /** Whether what they have typed waits below this. */
  readonly isAgain?: boolean;
}

/** What people see who are not signed in. */
export function AuthCard({ title, children, foot, hasEnded = false, isAgain = false }: AuthCardProps) {
  const { t } = useTranslation();
  return (
    <main className={styles.ground}>
      <div className={styles.corner}>
        <Preferences />
      </div>
      <div className={styles.card}>
        <img src="/dashboard-assets/mark.svg" alt="Cambist" width="40" height="40" />
        <Page title={title}>
          {hasEnded && <p role="status">{t(isAgain ? "signIn.kept" : "signIn.ended")}</p>}
          {children}
        </Page>
      </div>
      {foot !== undefined && <p className={styles.foot}>{foot}</p>}
    </main>
  );
}
