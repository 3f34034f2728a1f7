import type { ReactNode } from "react";

import styles from "./Copyable.module.css";
import { usePageLanguage, type PageLanguage } from "./language";
import { useCopy } from "./useCopy";
import { useHint } from "./useHint";

const MARK = "\0";
const patterns = new Map<string, string>();

/** Say that a text can be copied. A list says so a hundred times: each language's sentence is read once. */
function sayCopy({ t, language }: PageLanguage, text: string): string {
  let pattern = patterns.get(language);
  if (pattern === undefined) {
    pattern = t("ui.copy", { text: MARK });
    if (pattern.includes(MARK)) patterns.set(language, pattern); // its texts may be on their way
  }
  return pattern.replace(MARK, () => text);
}

interface CopyableProps {
  /** What is copied. */
  readonly text: string;
  /** What is said on hover; the text itself where nothing else is. */
  readonly label?: string;
  readonly children: ReactNode;
}

/** Something that a click copies whole. */
export function Copyable({ text, label = text, children }: CopyableProps) {
  const words = usePageLanguage();
  const { t } = words;
  const { isCopied, copy, byHand } = useCopy(text);
  const { events, hint } = useHint(() => (isCopied ? t("ui.copied") : label));
  return (
    <>
      <button
        type="button"
        className={styles.copyable}
        {...events}
        onClick={(event) => {
          event.preventDefault();
          event.stopPropagation();
          copy(event);
        }}
      >
        {children}
        <span className="unseen">{sayCopy(words, label)}</span>
        <span role="status" className="unseen">
          {isCopied ? t("ui.copied") : ""}
        </span>
      </button>
      {hint}
      {byHand}
    </>
  );
}
