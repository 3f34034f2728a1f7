import type { ReactNode } from "react";

import { None } from "../../ui/None";
import { Quoted, Trouble, useSentence } from "../../ui/Said";
import { useWords, type Schemas } from "../api";

type Job = Pick<Schemas["JobView"], "error" | "errorCode">;

interface WentProps {
  readonly code: Job["errorCode"];
  readonly words: Job["error"];
}

/** The name of an exception's class, which a worker writes before the words of what was raised. */
const CLASS = /^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Group|Interrupt|Timeout|Warning)(?:: ?|$)/;

/** What went wrong with a job: in words, and where the words are an exception's own, that only for whoever wants it. */
export function Went({ code, words }: WentProps) {
  const { t } = useWords();
  if (words === null) return <None />;
  if (!CLASS.test(words)) return <Trouble code={code ?? ""} words={words} />;
  return (
    <>
      <Sentence code={code} words={words.replace(CLASS, "")} />
      <details>
        <summary>{t("common:payment.details")}</summary>
        <code className="whole">{words}</code>
      </details>
    </>
  );
}

function Sentence({ code, words }: { readonly code: Job["errorCode"]; readonly words: string }): ReactNode {
  const { t } = useWords();
  const sentence = useSentence()("troubles", code ?? "");
  if (code === "UNEXPECTED" || code === null) return t("jobs.unexpected");
  if (sentence !== undefined) return sentence;
  if (code === "TIMED_OUT") return t("jobs.timedOut");
  return words === "" ? t("jobs.unexpected") : <Quoted words={words} />;
}
