import { queryOptions, useQuery } from "@tanstack/react-query";

import { ChainName, useChainName } from "../../ui/ChainName";
import { usePathPart } from "../../ui/address";
import { Copyable } from "../../ui/Copyable";
import { showList } from "../../ui/format";
import { None } from "../../ui/None";
import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryPage } from "../../ui/QueryView";
import { Trouble } from "../../ui/Said";
import { When } from "../../ui/When";
import { api, unwrap, useWords } from "../api";
import { Height } from "../chains/ChainsPage";
import { JobState } from "../jobs/JobState";
import { Went } from "../jobs/Went";

import { Differences } from "./Differences";
import { Agrees } from "./ReconcilePage";

const POLL_MS = 3_000;

function runQuery(jobId: string) {
  return queryOptions({
    queryKey: ["job", "reconcile", "one", jobId],
    queryFn: ({ signal }) => unwrap(api.GET("/api/admin/reconcile/{jobId}", { params: { path: { jobId } }, signal })),
  });
}

/** One run: what came of each chain, and every difference with what explains it. */
export function RunPage() {
  const { t, i18n } = useWords();
  const chainName = useChainName();
  const query = useQuery({
    ...runQuery(usePathPart("jobId")),
    refetchInterval: ({ state }) => (state.data?.run.finishedAt == null ? POLL_MS : false),
  });
  return (
    <QueryPage title={t("nav.reconcile")} query={query}>
      {({ run }) => (
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
              <Went code={run.errorCode} words={run.error} />
            </Section>
          )}
          {run.agrees === false && <Differences run={run} />}
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
                    one.problem === null ? <None /> : <Trouble code={one.problemCode ?? ""} words={one.problem} />,
                },
              ]}
            />
            {run.waiting.length > 0 && (
              <p className="inset">
                {t("reconcile.waiting", { chains: showList(run.waiting.map(chainName), i18n.language) })}
              </p>
            )}
          </Section>
          {run.agrees !== false && <Differences run={run} />}
        </Page>
      )}
    </QueryPage>
  );
}
