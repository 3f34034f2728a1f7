import { useTranslation } from "react-i18next";

import { Copyable } from "./Copyable";
import styles from "./Secret.module.css";

interface SecretProps {
  readonly text: string;
  /** What is said of copying it, in place of the text itself. */
  readonly label?: string;
}

/** What is shown this once: nobody has to find out by themselves that a click copies it. */
export function Secret({ text, ...named }: SecretProps) {
  const { t } = useTranslation();
  return (
    <Copyable text={text} {...named}>
      <span className={styles.secret}>
        <code className="secret">{text}</code>
        <span className={styles.copy} aria-hidden>
          {t("events.copyBody")}
        </span>
      </span>
    </Copyable>
  );
}
