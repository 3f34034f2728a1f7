import { queryOptions, useQuery } from "@tanstack/react-query";

import { ChainName, useChainName } from "../../ui/ChainName";
import { usePathPart } from "../../ui/address";
import { Amount } from "../../ui/Amount";
import { Copyable } from "../../ui/Copyable";
import { Empty } from "../../ui/Feedback";
import { showList } from "../../ui/format";
import { useMeaning } from "../../ui/Meaning";
import { Facts, Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryPage } from "../../ui/QueryView";
import { Quoted, Trouble } from "../../ui/Said";
import { When } from "../../ui/When";
import { api, unwrap, useWords, type Schemas } from "../api";
import { Height } from "../chains/ChainsPage";
import { JobState } from "../jobs/JobState";
import { MerchantLink } from "../merchants/MerchantLink";

import { Agrees } from "./ReconcilePage";

const POLL_MS = 3_000;

function runQuery(jobId: string) {
  return queryOptions({
    queryKey: ["job", "reconcile", "one", jobId],
    queryFn: ({ signal }) => unwrap(api.GET("/api/admin/reconcile/{jobId}", { params: { path: { jobId } }, signal })),
  });
}

/** One run: each chain, and every difference with what explains it. */
export function RunPage() {
  const { t, i18n } = useWords();
  const chainName = useChainName();
  const query = useQuery({
    ...runQuery(usePathPart("jobId")),
    refetchInterval: ({ state }) => (state.data?.run.finishedAt == null ? POLL_MS : false),
  });
  return (
    <QueryPage title={t("nav.reconcile")} query={query}>
      {({ run, differences }) => (
        <Page
          title={t("nav.reconcile")}
          tab={`${t("nav.reconcile")} ${run.jobId}`}
          lead={
            <span className="row">
              <JobState state={run.state} />
              <Agrees run={run} />
              <Copyable text={run.jobId}>
                <code>{run.jobId}</code>
              </Copyable>
              <When at={run.createdAt} />
            </span>
          }
        >
          {run.error !== null && (
            <Section title={t("record.error")}>
              <p>
                <Trouble code={run.errorCode ?? ""} words={run.error} />
              </p>
            </Section>
          )}
          <Section title={t("nav.chains")} flush>
            <Plain
              label={t("nav.chains")}
              rows={run.chains}
              rowKey={(one) => one.chain}
              columns={[
                { id: "chain", title: t("record.chain"), cell: (one) => <ChainName of={one.chain} /> },
                { id: "height", title: t("record.block"), atEnd: true, cell: (one) => <Height value={one.height} /> },
                {
                  id: "addresses",
                  title: t("reconcile.addresses"),
                  atEnd: true,
                  cell: (one) => <Height value={one.addressesAsked} />,
                },
                {
                  id: "differences",
                  title: t("reconcile.differences"),
                  atEnd: true,
                  cell: (one) => <Height value={one.differences} />,
                },
                {
                  id: "problem",
                  title: t("chains.problem"),
                  cell: (one) =>
                    one.problem === null ? "–" : <Trouble code={one.problemCode ?? ""} words={one.problem} />,
                },
              ]}
            />
            {run.waiting.length > 0 && (
              <p className="inset">
                {t("reconcile.waiting", { chains: showList(run.waiting.map(chainName), i18n.language) })}
              </p>
            )}
          </Section>
          {differences.length === 0 && run.finishedAt !== null && (
            <Section>
              <Empty title={t("reconcile.noDifferences")} />
            </Section>
          )}
          {differences.map((one) => (
            <DifferenceView
              key={`${one.chain} ${one.merchantId ?? ""} ${one.group} ${one.token} ${one.contractAddress ?? ""}`}
              difference={one}
            />
          ))}
        </Page>
      )}
    </QueryPage>
  );
}

function DifferenceView({ difference }: { readonly difference: Schemas["Difference"] }) {
  const { t } = useWords();
  const meaning = useMeaning();
  const chainName = useChainName();
  return (
    <Section title={`${chainName(difference.chain)} · ${difference.token} · ${meaning("group", difference.group)}`}>
      <Facts
        facts={[
          [
            t("reconcile.difference"),
            <Amount key="difference" value={difference.difference} token={difference.token} />,
          ],
          [t("reconcile.onChain"), <Amount key="chain" value={difference.onChain} token={difference.token} />],
          [t("reconcile.booked"), <Amount key="booked" value={difference.booked} token={difference.token} />],
          [t("reconcile.inTransit"), <Amount key="transit" value={difference.inTransit} token={difference.token} />],
          [t("record.merchant"), <MerchantLink key="merchant" of={difference} />],
          [
            t("record.why"),
            difference.explanations.length === 0 ? null : (
              <Quoted key="why" words={difference.explanations.join(" ")} />
            ),
          ],
        ]}
      />
    </Section>
  );
}
