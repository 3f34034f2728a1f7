import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";

import styles from "./Earlier.module.css";
import { Chip } from "./Status";

interface EarlierProps {
  /** Whether what is shown is what was asked for before. */
  readonly isSo: boolean;
  readonly children: ReactNode;
}

/** What may be of an earlier question: it is pale then, and said to be on its way, as nobody may take it for the answer. */
export function Earlier({ isSo, children }: EarlierProps) {
  const { t } = useTranslation();
  return (
    <div className={styles.earlier} aria-busy={isSo}>
      <div role="status" className={styles.note}>
        {isSo && <Chip tone="work">{t("ui.loading")}</Chip>}
      </div>
      {children}
    </div>
  );
}
