import { Button, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { ErrorNote } from "../../ui/Feedback";
import { List, type Column } from "../../ui/List";
import { Page, Section } from "../../ui/Page";
import { useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { useAct } from "../../ui/useAct";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";
import { usePermitted, useProjectId } from "../project";
import type { Schemas } from "../queries";

import { deliveriesQuery, type Delivery } from "./queries";
import { TestOutcome } from "./TestOutcome";

const STATUSES = ["pending", "delivered", "dropped"] as const;
type DeliveryStatus = (typeof STATUSES)[number];
const FILTERS = ["status", "resourceId"] as const;
const EVENTS = ["payment.paid", "payment.detected", "payment.expired", "payout.completed", "payout.failed"];

function isStatus(text: string | undefined): text is DeliveryStatus {
  return STATUSES.some((one) => one === text);
}

/** What the project's server is told: a try, and the log of all that was sent. */
export function WebhooksPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch(FILTERS);
  const { status, resourceId } = search.filters;
  const query = useQuery(
    deliveriesQuery(projectId, {
      page: search.page,
      ...(isStatus(status) ? { status } : {}),
      ...(resourceId === undefined ? {} : { resourceId }),
    }),
  );
  const columns: readonly Column<Delivery>[] = [
    { id: "created", title: t("payments.created"), cell: (one) => <When at={one.createdAt} /> },
    { id: "event", title: t("webhooks.event"), cell: (one) => one.event },
    { id: "status", title: t("payments.status"), cell: (one) => <Status value={one.status} /> },
    { id: "answer", title: t("webhooks.answer"), cell: (one) => <Answer delivery={one} /> },
    { id: "url", title: t("webhooks.url"), cell: (one) => one.url ?? "–" },
  ];
  return (
    <Page title={t("webhooks.title")}>
      {usePermitted("webhooks") && <Try projectId={projectId} />}
      <Section title={t("webhooks.log")} flush actions={<ProjectCsv list="deliveries" query={search.filters} />}>
        <div className="filters" role="search">
          <Select
            aria-label={t("payments.status")}
            placeholder={t("payments.status")}
            clearable
            data={STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) }))}
            value={status ?? null}
            onChange={(value) => {
              search.filter({ status: value ?? "" });
            }}
          />
          {resourceId !== undefined && (
            <Button
              variant="default"
              onClick={() => {
                search.filter({ resourceId: "" });
              }}
            >
              {t("webhooks.ofAll")}
            </Button>
          )}
        </div>
        <List
          label={t("webhooks.log")}
          columns={columns}
          query={query}
          rowKey={(one) => one.deliveryId}
          href={(one) => `/${projectId}/webhooks/${one.deliveryId}`}
          onPage={search.goTo}
          empty={t("webhooks.none")}
        />
      </Section>
    </Page>
  );
}

function Answer({ delivery }: { readonly delivery: Delivery }) {
  const last = delivery.attempts.at(-1);
  if (last === undefined) return <span className="muted">–</span>;
  return (
    <span className="number">
      {last.statusCode ?? last.error} · {last.durationMs} ms
    </span>
  );
}

function Try({ projectId }: { readonly projectId: string }) {
  const { t } = useTranslation();
  const [event, setEvent] = useState("payment.paid");
  const [result, setResult] = useState<Schemas["TestResult"] | null>(null);
  const test = useAct(async () => {
    setResult(null);
    const params = { path: { projectId } };
    setResult(await unwrap(api.POST("/api/merchant/projects/{projectId}/test-webhook", { params, body: { event } })));
  });
  return (
    <Section title={t("webhooks.test")}>
      <form className="stack" onSubmit={test.submit}>
        <p className="muted">{t("webhooks.testWords")}</p>
        <div className="row">
          <Select
            aria-label={t("webhooks.event")}
            allowDeselect={false}
            data={EVENTS}
            value={event}
            onChange={(value) => {
              setEvent(value ?? "payment.paid");
            }}
          />
          <Button type="submit" variant="default" loading={test.isRunning}>
            {t("webhooks.send")}
          </Button>
        </div>
        {test.error !== null && <ErrorNote error={test.error} />}
        {result !== null && <TestOutcome result={result} />}
      </form>
    </Section>
  );
}
