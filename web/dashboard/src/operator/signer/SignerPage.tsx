import { useQuery } from "@tanstack/react-query";

import { ChainName } from "../../ui/ChainName";
import { Empty } from "../../ui/Feedback";
import { numbers, showDuration } from "../../ui/format";
import { Meaning } from "../../ui/Meaning";
import { None } from "../../ui/None";
import { Facts, Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Quoted } from "../../ui/Said";
import { Chip } from "../../ui/Status";
import { Moment, When } from "../../ui/When";
import { api, unwrap, useWords, type Schemas } from "../api";

import { Answers } from "./Answers";
import { Approvals } from "./Approvals";
import { Reference } from "./Reference";
import { Rules } from "./Rules";
import styles from "./SignerPage.module.css";

type Signer = Schemas["SignerView"];
const POLL_MS = 10_000;

/** What the signer signs and what it refuses, how much of its limits is used, and what waits for a person. */
export function SignerPage() {
  const { t } = useWords();
  const query = useQuery({
    queryKey: ["signer"],
    refetchInterval: POLL_MS,
    queryFn: ({ signal }) => unwrap(api.GET("/api/admin/signer", { signal })),
  });
  return (
    <Page title={t("nav.signer")} lead={t("signer.lead")}>
      <QueryView query={query} lines={8}>
        {(signer) => (
          <>
            <State signer={signer} />
            <Approvals signer={signer} />
            {signer.answers.length > 0 && <Answers answers={signer.answers} />}
            <Rules rules={signer.rules} />
            <Refused refused={signer.refused.filter((one) => !isAsked(one, signer))} />
          </>
        )}
      </QueryView>
    </Page>
  );
}

/** Say whether it was refused as a person has to agree first, who is being asked above. */
function isAsked({ refusal, chain, reference }: Schemas["RefusalView"], { approvals }: Signer): boolean {
  return refusal === "APPROVAL_NEEDED" && approvals.some((one) => one.chain === chain && one.reference === reference);
}

function State({ signer }: { readonly signer: Signer }) {
  const { t, i18n } = useWords();
  return (
    <Section title={t("chains.state")}>
      <Facts
        facts={[
          [
            t("record.state"),
            <Chip key="state" tone={signer.isStale ? "bad" : "good"}>
              {t(signer.isStale ? "signer.stale" : "signer.heard")}
            </Chip>,
          ],
          [t("signer.reported"), signer.reportedAt === null ? null : <When key="at" at={signer.reportedAt} />],
          [t("signer.answers"), t(signer.approvalsByApi ? "signer.byApi" : "signer.notByApi")],
          [t("signer.locked"), signer.lockedUntil === null ? null : <Moment key="until" at={signer.lockedUntil} />],
          [
            t("signer.fresh"),
            signer.freshAddressDelaySeconds === null
              ? null
              : signer.freshAddressDelaySeconds === 0
                ? t("signer.freshNone")
                : showDuration(signer.freshAddressDelaySeconds, i18n.language),
          ],
        ]}
      />
    </Section>
  );
}

function Refused({ refused }: { readonly refused: readonly Schemas["RefusalView"][] }) {
  const { t, i18n } = useWords();
  const number = numbers(i18n.language);
  return (
    <Section title={t("signer.refused")} flush>
      {refused.length === 0 ? (
        <Empty title={t("signer.noRefusals")} />
      ) : (
        <Plain
          label={t("signer.refused")}
          rows={refused}
          rowKey={(one) => `${one.chain} ${one.purpose} ${one.reference} ${one.refusal} ${one.reason}`}
          columns={[
            { id: "last", title: t("signer.lastTime"), cell: (one) => <When at={one.refusedAt} /> },
            {
              id: "first",
              title: t("signer.firstTime"),
              cell: (one) => (one.times === 1 ? <None /> : <When at={one.firstRefusedAt} />),
            },
            {
              id: "times",
              title: t("signer.times"),
              atEnd: true,
              cell: (one) => <span className="number">{number.format(one.times)}</span>,
            },
            {
              id: "chain",
              title: t("record.chain"),
              cell: (one) => (
                <span className="oneLine">
                  <ChainName of={one.chain} />
                </span>
              ),
            },
            { id: "purpose", title: t("record.kind"), cell: (one) => <Meaning of="kind" code={one.purpose} /> },
            { id: "reference", title: t("signer.reference"), cell: (one) => <Reference value={one.reference} /> },
            {
              id: "why",
              title: t("record.why"),
              isWide: true,
              cell: (one) => (
                <span className={styles.why}>
                  <Quoted words={one.reason} />
                </span>
              ),
            },
          ]}
        />
      )}
    </Section>
  );
}
