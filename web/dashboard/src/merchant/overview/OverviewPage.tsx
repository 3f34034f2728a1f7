import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { gatewayNow } from "../../api/clock";
import { AttentionView } from "../../ui/Attention";
import { Fiat } from "../../ui/Amount";
import { Earlier } from "../../ui/Earlier";
import { SpanChoice, TurnoverView, askedFor, type SpanName } from "../../ui/Overview";
import { Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { api, unwrap } from "../api";
import { useNav } from "../nav";
import { useProject, useProjectId } from "../project";
import { Balances } from "../wallet/Balances";

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
      const asked = { ...askedFor(span, gatewayNow()), mode, project: projectId };
      return unwrap(api.GET("/api/dashboard/overview", { params: { query: asked }, signal }));
    },
  });
  const shown = (
    <QueryView query={query} lines={8}>
      {(found) => (
        <>
          <AttentionView attention={found.attention} nav={nav} />
          <Earlier isSo={query.isPlaceholderData}>
            <TurnoverView turnover={found.turnover} currency={found.currency} step={found.step} />
          </Earlier>
          {/* The wallet is the merchant's, whatever the project. */}
          <Section
            title={t("wallet.balances")}
            flush
            actions={found.balances.coins.length > 0 && <Fiat value={found.balances.fiat} currency={found.currency} />}
          >
            <Balances of={found.balances} currency={found.currency} />
          </Section>
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
