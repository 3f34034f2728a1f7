import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { Empty } from "../../ui/Feedback";
import { Filters, SelectFilter } from "../../ui/Filters";
import { List, listed, type Column } from "../../ui/List";
import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { api, unwrap, useWords, type Operations, type Schemas } from "../api";
import { ROWS } from "../queries";

import { RedeliverButton } from "./RedeliverButton";

type Delivery = Schemas["OperatorDelivery"];
type Asked = NonNullable<Operations["listAllDeliveries"]["parameters"]["query"]>;

const FILTERS = ["status"] as const;
const STATUSES = ["failing", "dropped", "paused", "pending", "delivered", "no_target", "cancelled"] as const;
const POLL_MS = 10_000;

/** Whose servers cannot be reached, and every delivery of all merchants. */
export function WebhooksPage() {
  const { t } = useWords();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  const query = useQuery({
    queryKey: ["delivery", "list", filters, search.page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const asked = { limit: ROWS, ...filters, page: search.page } as Asked; // the API checks it
      const answer = await unwrap(api.GET("/api/admin/webhooks/deliveries", { params: { query: asked }, signal }));
      return listed(answer.deliveries, answer);
    },
  });
  const columns: readonly Column<Delivery>[] = [
    { id: "created", title: t("common:payments.created"), cell: (one) => <When at={one.createdAt} /> },
    { id: "event", title: t("common:webhooks.event"), cell: (one) => one.event },
    { id: "status", title: t("record.status"), cell: (one) => <Status value={one.status} /> },
    { id: "merchant", title: t("record.merchant"), cell: (one) => one.merchantName },
    {
      id: "answer",
      title: t("common:webhooks.answer"),
      cell: (one) => one.lastAttempt?.statusCode ?? one.lastAttempt?.error ?? "–",
    },
    {
      id: "attempts",
      title: t("jobs.attempts"),
      atEnd: true,
      cell: (one) => <span className="number">{one.attempts}</span>,
    },
  ];
  return (
    <Page title={t("nav.webhooks")} lead={t("webhooks.lead")} actions={<RedeliverButton />}>
      <Failing />
      <Section title={t("common:webhooks.log")} flush>
        <Filters>
          <SelectFilter
            label={t("record.status")}
            value={filters.status}
            options={STATUSES.map((one) => ({ value: one, label: t(`common:status.${one}`) }))}
            onFilter={(status) => {
              search.filter({ status });
            }}
          />
        </Filters>
        <List
          label={t("common:webhooks.log")}
          columns={columns}
          query={query}
          rowKey={(one) => one.deliveryId}
          href={(one) => `/webhooks/${one.deliveryId}`}
          onPage={search.goTo}
          empty={<Empty title={t("record.noneFiltered")} />}
        />
      </Section>
    </Page>
  );
}

function Failing() {
  const { t } = useWords();
  const query = useQuery({
    queryKey: ["delivery", "failing"],
    refetchInterval: POLL_MS,
    queryFn: async ({ signal }) => (await unwrap(api.GET("/api/admin/webhooks/failing", { signal }))).endpoints,
  });
  return (
    <Section title={t("webhooks.failing")} flush>
      <QueryView query={query}>
        {(targets) =>
          targets.length === 0 ? (
            <Empty title={t("webhooks.allWell")} />
          ) : (
            <Plain
              label={t("webhooks.failing")}
              rows={targets}
              rowKey={(one) => `${one.projectId} ${one.endpointId ?? one.webhookId ?? one.url ?? ""}`}
              columns={[
                { id: "since", title: t("chains.failingSince"), cell: (one) => <When at={one.failingSince} /> },
                {
                  id: "merchant",
                  title: t("record.merchant"),
                  cell: (one) => `${one.merchantName} · ${one.projectName}`,
                },
                { id: "url", title: t("common:webhooks.url"), cell: (one) => one.url ?? "–" },
                {
                  id: "answer",
                  title: t("common:webhooks.answer"),
                  cell: (one) => one.lastAttempt?.statusCode ?? one.lastAttempt?.error ?? "–",
                },
                { id: "next", title: t("common:webhooks.next"), cell: (one) => <When at={one.nextAttemptAt} /> },
                {
                  id: "failing",
                  title: t("webhooks.waiting"),
                  atEnd: true,
                  cell: (one) => <span className="number">{one.failing}</span>,
                },
              ]}
            />
          )
        }
      </QueryView>
    </Section>
  );
}
