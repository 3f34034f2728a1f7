import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { Copyable } from "../../ui/Copyable";
import { Empty } from "../../ui/Feedback";
import { Meaning } from "../../ui/Meaning";
import { Facts, Section } from "../../ui/Page";
import { Text } from "../../ui/Text";
import { When } from "../../ui/When";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { useAskerName, usePermitted } from "../queries";

import { Reference } from "./Reference";
import styles from "./SignerPage.module.css";

type Approval = Schemas["ApprovalView"];

/**
 * What makes a code, with the secret in a file of the person's own device. Commands are shown and never copied: whoever
 * has taken over what serves this page could have another line with it, which a terminal would run.
 */
const CODE_COMMAND = "cambist signer code ~/answers.secret";

/** What the signer signs only once a person has looked at it. */
export function Approvals({ signer }: { readonly signer: Schemas["SignerView"] }) {
  const { t } = useWords();
  const askerName = useAskerName();
  const mayAnswer = usePermitted("signer.answer") && signer.approvalsByApi;
  return (
    <Section title={t("signer.approvals")}>
      {signer.approvals.length === 0 ? (
        <Empty title={t("signer.noApprovals")} />
      ) : (
        <ul className={styles.approvals}>
          {signer.approvals.map((one) => {
            const answer = signer.answers.find((given) => given.question === one.question);
            return (
              <li key={one.approvalId} className="stack">
                <What approval={one} />
                {answer !== undefined && (
                  <p className="muted">
                    {answer.outcome === null ? (
                      t("signer.answered", { by: askerName(answer.askedBy) })
                    ) : (
                      <Meaning of="signerAnswer" code={answer.outcome} />
                    )}{" "}
                    · <When at={answer.askedAt} />
                  </p>
                )}
                {mayAnswer && (
                  <div className="row">
                    <Answer approval={one} verdict="approve" />
                    <Answer approval={one} verdict="deny" />
                  </div>
                )}
                {!signer.approvalsByApi && <AtTheSigner approval={one} />}
              </li>
            );
          })}
        </ul>
      )}
    </Section>
  );
}

/** Where no answer is taken from here: what whoever has the signer's machine runs there. */
function AtTheSigner({ approval: { reference, intentId } }: { readonly approval: Approval }) {
  const { t } = useWords();
  const command = `cambist signer approve ${reference}`;
  return (
    <p>
      {t("signer.agreeThere")} <code>{command}</code>
      <br />
      {t("signer.refuseThere")}{" "}
      {intentId === null ? (
        <Link to="/queue">{t("nav.queue")}</Link>
      ) : (
        <Link to={`/queue/${intentId}`}>{t("signer.itsSending")}</Link>
      )}
    </p>
  );
}

function What({ approval }: { readonly approval: Approval }) {
  const { t } = useWords();
  return (
    <Facts
      facts={[
        [t("record.kind"), <Meaning key="kind" of="kind" code={approval.purpose} />],
        [t("record.amount"), <InWords key="amount" amount={approval.amount} />],
        [t("record.chain"), <ChainName key="chain" of={approval.toChain} />],
        [t("record.to"), <Address key="to" value={approval.toAddress} whole />],
        [t("signer.reference"), <Reference key="reference" value={approval.reference} whole />],
        [t("signer.asked"), <When key="asked" at={approval.askedAt} />],
      ]}
    />
  );
}

/** An amount as the signer words it: `25000 USDT`. */
function InWords({ amount }: { readonly amount: string }) {
  const [value = "", token] = amount.split(" ");
  return <Amount value={value} token={token} isWhole />;
}

function Answer({ approval, verdict }: { readonly approval: Approval; readonly verdict: "approve" | "deny" }) {
  const { t } = useWords();
  const client = useQueryClient();
  const [code, setCode] = useState("");
  return (
    <ActButton
      isDangerous={verdict === "approve"}
      act={t(`signer.${verdict}`)}
      title={t(`signer.${verdict}Title`)}
      onConfirm={async () => {
        const params = { path: { approvalId: approval.approvalId } };
        const body = { code: code.trim(), question: approval.question };
        if (verdict === "approve") {
          await unwrap(api.POST("/api/admin/signer/approvals/{approvalId}/approve", { params, body }));
        } else await unwrap(api.POST("/api/admin/signer/approvals/{approvalId}/deny", { params, body }));
        setCode("");
        await client.invalidateQueries({ queryKey: ["signer"] });
      }}
    >
      <What approval={approval} />
      <p>{t(`signer.${verdict}Words`)}</p>
      <p>
        {t("signer.question")}{" "}
        <Copyable text={approval.question}>
          <code>{approval.question}</code>
        </Copyable>
      </p>
      <p>
        {t("signer.codeWords")} <code>{CODE_COMMAND}</code>
      </p>
      <Text label={t("signer.code")} required autoComplete="off" value={code} onText={setCode} />
    </ActButton>
  );
}
