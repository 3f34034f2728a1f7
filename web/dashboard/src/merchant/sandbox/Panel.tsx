import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { useProject } from "../project";

import styles from "./Panel.module.css";

/** Where it would fill the screen before anything of the page is seen. */
const PHONE = "(max-width: 640px)";

/** What only a simulated chain lets one do, on the page of what it is done to. There is none of it in a live project. */
export function Panel({ children }: { readonly children: ReactNode }) {
  const { t } = useTranslation();
  const [isOpen] = useState(() => !matchMedia(PHONE).matches);
  if (useProject()?.mode !== "sandbox") return null;
  return (
    <section className={styles.panel} aria-label={t("sandbox.panel")}>
      <details open={isOpen}>
        <summary className={styles.head}>
          <h2>{t("sandbox.panel")}</h2>
          <span>{t("mode.sandboxWords")}</span>
        </summary>
        <div className={styles.body}>{children}</div>
      </details>
    </section>
  );
}
