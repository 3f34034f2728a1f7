import { Meaning } from "../../ui/Meaning";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { When } from "../../ui/When";
import { useWords, type Schemas } from "../api";
import { useAskerName } from "../queries";

import styles from "./SignerPage.module.css";

const SHOWN = 10;

/** What persons answered lately, and what became of it: a question that was answered no longer waits. */
export function Answers({ answers }: { readonly answers: readonly Schemas["AnswerView"][] }) {
  const { t } = useWords();
  const askerName = useAskerName();
  return (
    <Section title={t("signer.latest")} flush>
      <Plain
        label={t("signer.latest")}
        rows={answers.slice(0, SHOWN)}
        rowKey={(one) => one.answerId}
        columns={[
          { id: "at", title: t("signer.answeredAt"), cell: (one) => <When at={one.askedAt} /> },
          { id: "by", title: t("signer.answeredBy"), cell: (one) => askerName(one.askedBy) },
          { id: "verdict", title: t("signer.verdict"), cell: (one) => t(`signer.${one.verdict}`) },
          {
            id: "outcome",
            title: t("signer.outcome"),
            cell: ({ outcome }) =>
              outcome === null ? t("signer.notTaken") : <Meaning of="signerAnswer" code={outcome} />,
          },
          {
            id: "question",
            title: t("signer.asWhat"),
            isWide: true,
            cell: (one) => <code className={styles.why}>{one.question}</code>,
          },
        ]}
      />
    </Section>
  );
}
