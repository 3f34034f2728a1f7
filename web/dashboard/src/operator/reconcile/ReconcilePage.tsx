import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { useChainName } from "../../ui/ChainName";
import { Empty } from "../../ui/Feedback";
import { showList } from "../../ui/format";
import { List, listed, type Column } from "../../ui/List";
import { None } from "../../ui/None";
import { Page, Section } from "../../ui/Page";
import { useListSearch } from "../../ui/search";
import { Chip } from "../../ui/Status";
import { When } from "../../ui/When";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { JobState } from "../jobs/JobState";
import { ROWS, useAskerName, usePermitted } from "../queries";

type Run = Schemas["ReconcileRun"];
const POLL_MS = 5_000;

/** Every comparison of what the chains say with what the books say. */
export function ReconcilePage() {
  const { t, i18n } = useWords();
  const navigate = useNavigate();
  const search = useListSearch([]);
  const askerName = useAskerName();
  const chainName = useChainName();
  const mayStart = usePermitted("reconcile.start");
  const query = useQuery({
    queryKey: ["job", "reconcile", search.page],
    placeholderData: keepPreviousData,
    refetchInterval: POLL_MS,
    queryFn: async ({ signal }) => {
      const params = { query: { limit: ROWS, page: search.page } };
      const answer = await unwrap(api.GET("/api/admin/reconcile", { params, signal }));
      return listed(answer.runs, answer);
    },
  });
  const columns: readonly Column<Run>[] = [
    { id: "created", title: t("common:payments.created"), cell: (one) => <When at={one.createdAt} /> },
    { id: "state", title: t("record.state"), cell: (one) => <JobState state={one.state} /> },
    { id: "agrees", title: t("reconcile.found"), cell: (one) => <Agrees run={one} /> },
    {
      id: "chains",
      title: t("nav.chains"),
      cell: (one) =>
        showList(
          one.chains.map(({ chain }) => chainName(chain)),
          i18n.language,
        ),
    },
    { id: "by", title: t("queue.askedBy"), cell: (one) => askerName(one.requestedBy) },
  ];
  return (
    <Page
      title={t("nav.reconcile")}
      lead={t("reconcile.lead")}
      actions={
        mayStart && (
          <ActButton
            act={t("reconcile.start")}
            title={t("reconcile.startTitle")}
            onConfirm={async () => {
              const { run } = await unwrap(api.POST("/api/admin/reconcile", { body: {} }));
              await navigate({ to: `/reconcile/${run.jobId}` });
            }}
          >
            <p>{t("reconcile.startWords")}</p>
          </ActButton>
        )
      }
    >
      <Section flush>
        <List
          label={t("nav.reconcile")}
          columns={columns}
          query={query}
          rowKey={(one) => one.jobId}
          href={(one) => `/reconcile/${one.jobId}`}
          onPage={search.goTo}
          empty={<Empty title={t("reconcile.none")} />}
        />
      </Section>
    </Page>
  );
}

/** Whether the books are what the chains say: what could not be read is neither. */
export function Agrees({ run }: { readonly run: Run }) {
  const { t } = useWords();
  if (run.agrees === null) return <None />;
  if (run.agrees) return <Chip tone="good">{t("reconcile.agrees")}</Chip>;
  return run.chains.some(({ differences }) => differences > 0) ? (
    <Chip tone="bad">{t("reconcile.differs")}</Chip>
  ) : (
    <Chip tone="care">{t("reconcile.unread")}</Chip>
  );
}
