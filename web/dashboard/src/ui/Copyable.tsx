import { useClipboard } from "@mantine/hooks";
import type { ReactNode } from "react";

import styles from "./Copyable.module.css";
import { useHint } from "./useHint";
import { useWords } from "./words";

interface CopyableProps {
  /** What is copied. */
  readonly text: string;
  /** What is said on hover; the text itself where nothing else is. */
  readonly label?: string;
  readonly children: ReactNode;
}

/** Something that a click copies whole. */
export function Copyable({ text, label = text, children }: CopyableProps) {
  const { t } = useWords();
  const clipboard = useClipboard({ timeout: 1500 });
  const { events, hint } = useHint(() => (clipboard.copied ? t("ui.copied") : label));
  return (
    <>
      <button
        type="button"
        className={styles.copyable}
        {...events}
        onClick={(event) => {
          event.preventDefault();
          event.stopPropagation();
          clipboard.copy(text);
        }}
      >
        {children}
        <span className="unseen">{t("ui.copy", { text: label })}</span>
        <span role="status" className="unseen">
          {clipboard.copied ? t("ui.copied") : ""}
        </span>
      </button>
      {hint}
    </>
  );
}
