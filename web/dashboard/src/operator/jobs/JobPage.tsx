import { Button } from "@mantine/core";
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { downloadCsv } from "../../api/download";
import { usePathPart } from "../../ui/address";
import { Copyable } from "../../ui/Copyable";
import { ErrorNote } from "../../ui/Feedback";
import { showTook } from "../../ui/format";
import { useMeaning } from "../../ui/Meaning";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { useAct } from "../../ui/useAct";
import { Moment, When } from "../../ui/When";
import { ActButton } from "../ActButton";
import { api, operatorSession, unwrap, useWords, type Schemas } from "../api";
import { useAskerName, usePermitted } from "../queries";

import { JobState } from "./JobState";
import { Progress } from "./Progress";
import { Asked, Became } from "./Told";
import { Went } from "./Went";

type Job = Schemas["JobView"];
const POLL_MS = 3_000;

function jobQuery(jobId: string) {
  return queryOptions({
    queryKey: ["job", "one", jobId],
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET("/api/admin/jobs/{jobId}", { params: { path: { jobId } }, signal }))).job,
  });
}

/** One job: how far it is, and what came of it. */
export function JobPage() {
  const { t } = useWords();
  const query = useQuery({
    ...jobQuery(usePathPart("jobId")),
    refetchInterval: ({ state }) => (state.data?.finishedAt == null ? POLL_MS : false),
  });
  return (
    <QueryPage title={t("nav.jobs")} query={query}>
      {(job) => <Shown job={job} />}
    </QueryPage>
  );
}

function Shown({ job }: { readonly job: Job }) {
  const meaning = useMeaning();
  const askerName = useAskerName();
  const { t, i18n } = useWords();
  // One that was begun before and is to be tried again takes no time now, and is with no worker.
  const isWaiting = job.state === "queued";
  return (
    <Page
      title={meaning("job", job.kind)}
      tab={`${job.kind} ${job.jobId}`}
      lead={
        <span className="row">
          <JobState state={job.state} />
          <Copyable text={job.jobId}>
            <code>{job.jobId}</code>
          </Copyable>
          <When at={job.createdAt} />
          <Outcome of={job} />
        </span>
      }
      actions={<Acts job={job} />}
    >
      <Section title={t("common:payment.details")}>
        <Facts
          facts={[
            [
              t("record.error"),
              job.error === null ? null : <Went key="error" code={job.errorCode} words={job.error} />,
            ],
            [t("queue.askedBy"), askerName(job.requestedBy)],
            [t("jobs.failedAttempts"), job.attempts === 0 ? null : job.attempts],
            [t("jobs.started"), job.startedAt === null ? null : <Moment key="started" at={job.startedAt} />],
            [t("jobs.finished"), job.finishedAt === null ? null : <Moment key="finished" at={job.finishedAt} />],
            [t("record.due"), isBegunAgain(job) ? <When key="next" at={job.dueAt} /> : null],
            [t("jobs.took"), isWaiting || job.durationMs === null ? null : showTook(job.durationMs, i18n.language)],
            [t("jobs.worker"), isWaiting ? null : job.worker],
          ]}
        />
      </Section>
      <Asked job={job} />
      <Progress job={job} />
      <Became job={job} />
    </Page>
  );
}

/** Whether it was begun, could not go on, and waits until it is tried again. */
function isBegunAgain({ state, error }: Job): boolean {
  return state === "queued" && error !== null;
}

/** Leads to the page that shows what came of a comparison. */
function Outcome({ of: { kind, jobId, state } }: { readonly of: Job }) {
  const { t } = useWords();
  const mayReconcile = usePermitted("reconcile.read");
  const mayAudit = usePermitted("audit.read");
  if (state !== "succeeded") return null;
  if (kind === "reconcile" && mayReconcile) return <Link to={`/reconcile/${jobId}`}>{t("nav.reconcile")}</Link>;
  return kind === "audit_verification" && mayAudit ? <Link to="/audit">{t("nav.audit")}</Link> : null;
}

function Acts({ job }: { readonly job: Job }) {
  const { t } = useWords();
  const client = useQueryClient();
  const mayChange = usePermitted("jobs.change");
  const params = { path: { jobId: job.jobId } };
  const changed = () => client.invalidateQueries({ queryKey: ["job"] });
  const retry = useAct(async () => {
    await unwrap(api.POST("/api/admin/jobs/{jobId}/retry", { params }));
    await changed();
  });
  const save = useAct(() =>
    downloadCsv(`/api/admin/jobs/${job.jobId}/output`, `${job.kind}-${job.jobId}.csv`, operatorSession),
  );
  const error = retry.error ?? save.error;
  return (
    <>
      {error !== null && <ErrorNote error={error} />}
      {job.kind === "statement_export" && job.state === "succeeded" && (
        <Button variant="default" loading={save.isRunning} onClick={() => void save.run()}>
          {t("common:ui.csv")}
        </Button>
      )}
      {mayChange && (job.state === "failed" || job.state === "cancelled") && (
        <Button variant="default" loading={retry.isRunning} onClick={() => void retry.run()}>
          {t("common:ui.retry")}
        </Button>
      )}
      {mayChange && (job.state === "queued" || job.state === "running") && (
        <ActButton
          act={t("jobs.cancel")}
          title={t("jobs.cancelTitle")}
          dismiss={t("act.leave")}
          onConfirm={async () => {
            await unwrap(api.POST("/api/admin/jobs/{jobId}/cancel", { params }));
            await changed();
          }}
        >
          <p>{t("jobs.cancelWords")}</p>
        </ActButton>
      )}
    </>
  );
}
