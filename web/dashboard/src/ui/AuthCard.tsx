import type { ReactNode } from "react";

import { Page } from "./Page";
import { Preferences } from "./Preferences";

import styles from "./AuthCard.module.css";

interface AuthCardProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly foot?: ReactNode;
}

/** What people see who are not signed in. */
export function AuthCard({ title, children, foot }: AuthCardProps) {
  return (
    <main className={styles.ground}>
      <div className={styles.corner}>
        <Preferences />
      </div>
      <div className={styles.card}>
        <img src="/dashboard-assets/mark.svg" alt="Cambist" width="40" height="40" />
        <Page title={title}>{children}</Page>
      </div>
      {foot !== undefined && <p className={styles.foot}>{foot}</p>}
    </main>
  );
}
