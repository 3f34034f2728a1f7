import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useLocation } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

import { CsvButton } from "../../ui/CsvButton";
import { Empty } from "../../ui/Feedback";
import { showTook } from "../../ui/format";
import { SelectFilter } from "../../ui/Filters";
import { listed, type Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { Meaning, useMeaning } from "../../ui/Meaning";
import { None } from "../../ui/None";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { newestFirst, useListSearch } from "../../ui/search";
import { When } from "../../ui/When";
import { api, operatorSession, unwrap, useWords, type Operations, type Schemas } from "../api";
import { ROWS, useAskerName } from "../queries";

import { JobState } from "./JobState";
import { Went } from "./Went";

type Job = Schemas["JobView"];
type Asked = NonNullable<Operations["listJobs"]["parameters"]["query"]>;

const FILTERS = ["kind", "state", "sort"] as const;
const KINDS = Object.keys({
  audit_verification: true,
  reconcile: true,
  rescan: true,
  statement_export: true,
  tracker_history: true,
  webhook_redelivery: true,
} as const satisfies Record<Job["kind"], true>);
export const STATES = ["queued", "running", "succeeded", "failed", "cancelled"] as const;
const POLL_MS = 10_000;
/** The part of the page that is about what recurs: a link may lead to it. */
const RECURRING = "recurring";

/** Long work that somebody asked for, and what recurs by itself. */
export function JobsPage() {
  const { t } = useWords();
  const meaning = useMeaning();
  const askerName = useAskerName();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  const query = useQuery({
    queryKey: ["job", "list", filters, search.page],
    placeholderData: keepPreviousData,
    refetchInterval: POLL_MS,
    queryFn: async ({ signal }) => {
      const asked = { limit: ROWS, ...filters, page: search.page } as Asked; // the API checks it
      const answer = await unwrap(api.GET("/api/admin/jobs", { params: { query: asked }, signal }));
      return listed(answer.jobs, answer);
    },
  });
  const columns: readonly Column<Job>[] = [
    {
      id: "created",
      title: t("common:payments.created"),
      sort: "createdAt",
      cell: (one) => <When at={one.createdAt} />,
    },
    { id: "kind", title: t("record.kind"), cell: (one) => <Meaning of="job" code={one.kind} /> },
    { id: "state", title: t("record.state"), cell: (one) => <JobState state={one.state} /> },
    { id: "by", title: t("queue.askedBy"), cell: (one) => askerName(one.requestedBy) },
    { id: "error", title: t("record.error"), cell: (one) => <Went code={one.errorCode} words={one.error} /> },
  ];
  return (
    <ListPage
      title={t("nav.jobs")}
      lead={t("jobs.lead")}
      search={search}
      csv={<CsvButton path="/api/admin/jobs" query={filters} name="jobs" session={operatorSession} />}
      listTitle={t("jobs.asked")}
      filters={
        <>
          <SelectFilter
            label={t("record.kind")}
            value={filters.kind}
            options={KINDS.map((one) => ({ value: one, label: meaning("job", one) }))}
            onFilter={search.set.kind}
          />
          <SelectFilter
            label={t("record.state")}
            value={filters.state}
            options={STATES.map((one) => ({ value: one, label: t(`jobState.${one}`) }))}
            onFilter={search.set.state}
          />
        </>
      }
      columns={columns}
      query={query}
      rowKey={(one) => one.jobId}
      href={(one) => `/jobs/${one.jobId}`}
      {...newestFirst(search)}
      none={t("jobs.nothing")}
      noneFiltered={t("jobs.none")}
      foot={<Recurring isAboveShown={query.data !== undefined} />}
    />
  );
}

interface RecurringProps {
  /** Whether all that stands above it is there. */
  readonly isAboveShown: boolean;
}

/** What recurs by itself, what fails first. */
function Recurring({ isAboveShown }: RecurringProps) {
  const { t, i18n } = useWords();
  const query = useQuery({
    queryKey: ["cron"],
    refetchInterval: POLL_MS,
    queryFn: async ({ signal }) => (await unwrap(api.GET("/api/admin/jobs/recurring", { signal }))).recurring,
  });
  const isWanted = useLocation({ select: ({ hash }) => hash === RECURRING });
  const part = useRef<HTMLDivElement>(null);
  const isShown = isAboveShown && query.data !== undefined;
  useEffect(() => {
    if (isWanted && isShown) part.current?.scrollIntoView();
  }, [isWanted, isShown]);
  return (
    <div id={RECURRING} ref={part}>
      <Section title={t("jobs.recurring")} flush>
        <QueryView query={query}>
          {(jobs) =>
            jobs.length === 0 ? (
              <Empty title={t("jobs.noWorker")} />
            ) : (
              <Plain
                label={t("jobs.recurring")}
                rows={jobs.toSorted((one, other) => Number(one.error === null) - Number(other.error === null))}
                rowKey={(one) => one.name}
                columns={[
                  { id: "name", title: t("record.name"), cell: (one) => <Meaning of="recurring" code={one.name} /> },
                  { id: "due", title: t("jobs.lastRun"), cell: (one) => <When at={one.dueAt} /> },
                  {
                    id: "well",
                    title: t("jobs.lastSuccess"),
                    cell: (one) => (one.lastSuccessAt === null ? <None /> : <When at={one.lastSuccessAt} />),
                  },
                  {
                    id: "took",
                    title: t("jobs.took"),
                    atEnd: true,
                    cell: (one) =>
                      one.durationMs === null ? (
                        <None />
                      ) : (
                        <span className="number">{showTook(one.durationMs, i18n.language)}</span>
                      ),
                  },
                  {
                    id: "error",
                    title: t("record.error"),
                    cell: (one) => <Went code={one.errorCode} words={one.error} />,
                  },
                ]}
              />
            )
          }
        </QueryView>
      </Section>
    </div>
  );
}
