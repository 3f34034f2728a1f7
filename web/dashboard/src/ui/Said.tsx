import { useTranslation } from "react-i18next";

import styles from "./Said.module.css";

/**
 * What the API says in a sentence with a code: errors, what needs attention, what something waits for, failed by, or is
 * not done for, and what is wrong with a chain, a job or a token.
 */
type Sentences = "errors" | "attention" | "waits" | "failed" | "automatic" | "wishes" | "troubles";

/** Return the sentence for a code in the reader's language, where there is one. In English, the API's own is the one. */
export function useSentence(): (of: Sentences, code: string) => string | undefined {
  const { i18n } = useTranslation();
  const find = (of: Sentences, code: string): string | undefined => {
    const text: unknown = i18n.getResource(i18n.language, "said", `${of}.${code}`);
    return typeof text === "string" ? text : undefined;
  };
  // What is not done by itself is not done for the reasons for which it would be refused.
  return (of, code) => find(of, code) ?? (of === "automatic" ? find("errors", code) : undefined);
}

interface SaidProps {
  readonly of: Sentences;
  readonly code: string;
  /** What the API said, in English. */
  readonly words: string;
  /** Show the API's own sentence as well: it names amounts, limits or reasons, which the other one cannot. */
  readonly withOwn?: boolean;
}

/** What the API said, in the reader's language where there is a sentence for its code. */
export function Said({ of, code, words, withOwn = false }: SaidProps) {
  const sentence = useSentence()(of, code);
  const own = (
    <span lang="en" dir="ltr" className={styles.own}>
      {words}
    </span>
  );
  if (sentence === undefined) return own;
  return (
    <>
      {sentence}
      {withOwn && <span className="muted"> {own}</span>}
    </>
  );
}

interface CodedProps {
  readonly code: string;
  /** The API's own sentence. */
  readonly words: string;
}

/** What something waits for before it is sent. The signer's reasons begin with its name. */
export function Waits({ code, words }: CodedProps) {
  return <Said of="waits" code={code.replace("signer: ", "")} words={words} />;
}

/** Codes whose sentences end with somebody else's words. */
const IN_OTHERS_WORDS: ReadonlySet<string> = new Set([
  "ALLOWANCE_FAILED",
  "CHAIN_REFUSED",
  "REFUSED",
  "SIGNER_REFUSED",
]);

/** Why something that was to be sent ended without effect. */
export function Failed({ code, words }: CodedProps) {
  return <Said of="failed" code={code} words={words} withOwn={IN_OTHERS_WORDS.has(code)} />;
}

/** Troubles that are told whole by their code. The API's own sentence of any other names an endpoint, a token, a time. */
const TOLD_BY_CODE: ReadonlySet<string> = new Set([
  "CHAIN_NOT_CONNECTED",
  "CHAIN_PAUSED",
  "WATCH_BEHIND",
  "BLOCKS_LEFT",
  "WORKER_DIED",
  "NOT_CONNECTED",
  "NO_WORKER",
  "NOT_CHANGEABLE",
  "NOT_IN_SIGNERS_FILE",
  "SIGNER_NOT_ASKED",
]);

/** What is wrong with a chain, with a change of it, with a job or with a token. */
export function Trouble({ code, words }: CodedProps) {
  return <Said of="troubles" code={code} words={words} withOwn={!TOLD_BY_CODE.has(code)} />;
}

/** A sentence of the API's that has no code, and so no other language: marked as English for who reads aloud. */
export function Quoted({ words }: { readonly words: string }) {
  return (
    <span lang="en" dir="auto" className={styles.own}>
      {words}
    </span>
  );
}
