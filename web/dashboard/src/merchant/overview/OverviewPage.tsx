import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Amount, Fiat } from "../../ui/Amount";
import { Empty } from "../../ui/Feedback";
import { AttentionView, SpanChoice, TurnoverView, askedFor, type SpanName } from "../../ui/Overview";
import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { api, unwrap } from "../api";
import { useNav } from "../nav";
import { useProject, useProjectId } from "../project";
import type { Schemas } from "../queries";

import { FirstSteps } from "./FirstSteps";

/** What waits for too long does so without anything that changes; everything else is told. */
const POLL_MS = 300_000;
/** Its sums are much to ask for: on a busy gateway something changes every second. */
const REST_MS = 10_000;

/** What needs attention, what came of the project's payments, and what the merchant has. */
export function OverviewPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const project = useProject();
  const mode = project?.mode ?? "live";
  const nav = useNav(project);
  const [span, setSpan] = useState<SpanName>("month");
  const query = useQuery({
    queryKey: ["project", projectId, "overview", span],
    placeholderData: keepPreviousData,
    refetchInterval: POLL_MS,
    meta: { restMs: REST_MS },
    queryFn: ({ signal }) => {
      const asked = { ...askedFor(span, Date.now()), mode, project: projectId };
      return unwrap(api.GET("/api/dashboard/overview", { params: { query: asked }, signal }));
    },
  });
  const shown = (
    <QueryView query={query} lines={8}>
      {(found) => (
        <>
          <AttentionView attention={found.attention} nav={nav} />
          <TurnoverView turnover={found.turnover} currency={found.currency} step={found.step} />
          <Balances balances={found.balances} currency={found.currency} />
        </>
      )}
    </QueryView>
  );
  return (
    <Page title={t("overview.title")} actions={<SpanChoice value={span} onSpan={setSpan} />}>
      {project?.mode === "sandbox" ? (
        <FirstSteps key={projectId} project={project}>
          {shown}
        </FirstSteps>
      ) : (
        shown
      )}
    </Page>
  );
}

interface BalancesProps {
  readonly balances: Schemas["Balances"];
  readonly currency: string;
}

/** The wallet is the merchant's, whatever the project. */
function Balances({ balances, currency }: BalancesProps) {
  const { t } = useTranslation();
  return (
    <Section
      title={t("wallet.balances")}
      flush
      actions={balances.coins.length > 0 && <Fiat value={balances.fiat} currency={currency} />}
    >
      {balances.coins.length === 0 ? (
        <Empty title={t("wallet.none")} />
      ) : (
        <Plain
          label={t("wallet.balances")}
          rows={balances.coins}
          rowKey={(one) => `${one.chain} ${one.contractAddress ?? one.token}`}
          columns={[
            { id: "token", title: t("payments.token"), cell: (one) => <b>{one.token}</b> },
            { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
            {
              id: "available",
              title: t("wallet.available"),
              atEnd: true,
              cell: (one) => <Amount value={one.available} />,
            },
            {
              id: "fiat",
              title: t("overview.worth"),
              atEnd: true,
              cell: (one) => (one.fiat === null ? "–" : <Fiat value={one.fiat} currency={currency} />),
            },
          ]}
        />
      )}
    </Section>
  );
}
