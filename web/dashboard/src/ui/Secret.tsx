import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";

import { Copyable } from "./Copyable";
import styles from "./Secret.module.css";

interface SecretProps {
  readonly text: string;
  /** What is said of copying it, in place of the text itself. */
  readonly label?: string;
  /** Whether it stands below another one, which is to come into sight. */
  readonly isFurther?: boolean;
}

/** What is shown this once: nobody has to look for it, or to find out by themselves that a click copies it. */
export function Secret({ text, isFurther = false, ...named }: SecretProps) {
  const { t } = useTranslation();
  const place = useRef<HTMLSpanElement>(null);
  // It comes below the button that was pressed for it, which on a phone is where the screen ends.
  useEffect(() => {
    if (!isFurther) place.current?.scrollIntoView({ block: "nearest" });
  }, [text, isFurther]);
  return (
    <Copyable text={text} {...named}>
      <span ref={place} className={styles.secret}>
        <code className="secret">{text}</code>
        <span className={styles.copy} aria-hidden>
          {t("events.copyBody")}
        </span>
      </span>
    </Copyable>
  );
}
