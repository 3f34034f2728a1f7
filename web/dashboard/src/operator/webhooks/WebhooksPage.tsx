import { Button } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { CsvButton } from "../../ui/CsvButton";
import { timesOf } from "../../ui/days";
import { EVENTS, EVENTS_OF_TRACKERS } from "../../ui/events";
import { DaysFilter, SelectFilter } from "../../ui/Filters";
import { listed, type Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { None } from "../../ui/None";
import { newestFirst, useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { api, operatorSession, unwrap, useWords, type Operations, type Schemas } from "../api";
import { MerchantLink } from "../merchants/MerchantLink";
import { MerchantFilter } from "../merchants/MerchantSelect";
import { ROWS } from "../queries";

import { Failing } from "./Failing";
import { RedeliverButton } from "./RedeliverButton";

type Delivery = Schemas["OperatorDelivery"];
type Asked = NonNullable<Operations["listAllDeliveries"]["parameters"]["query"]>;

const PATH = "/api/admin/webhooks/deliveries";
const FILTERS = ["status", "event", "merchantId", "projectId", "endpointId", "from", "until", "sort"] as const;
const STATUSES = ["failing", "dropped", "paused", "pending", "delivered", "no_target", "cancelled"] as const;

/** Whose servers cannot be reached, and every delivery of all merchants. */
export function WebhooksPage() {
  const { t } = useWords();
  const search = useListSearch(FILTERS);
  const { from, until, ...filters } = search.filters;
  const asked = { ...filters, ...timesOf(from, until) };
  const query = useQuery({
    queryKey: ["delivery", "list", asked, search.page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const params = { query: { limit: ROWS, ...asked, page: search.page } as Asked }; // the API checks it
      const answer = await unwrap(api.GET(PATH, { params, signal }));
      return listed(answer.deliveries, answer);
    },
  });
  const columns: readonly Column<Delivery>[] = [
    {
      id: "created",
      title: t("common:payments.created"),
      sort: "createdAt",
      cell: (one) => <When at={one.createdAt} />,
    },
    { id: "event", title: t("common:webhooks.event"), cell: (one) => one.event },
    { id: "status", title: t("record.status"), cell: (one) => <Status value={one.status} /> },
    { id: "merchant", title: t("record.merchant"), cell: (one) => <MerchantLink of={one} /> },
    {
      id: "answer",
      title: t("common:webhooks.answer"),
      cell: (one) => one.lastAttempt?.statusCode ?? one.lastAttempt?.error ?? <None />,
    },
    {
      id: "attempts",
      title: t("jobs.attempts"),
      atEnd: true,
      cell: (one) => <span className="number">{one.attempts}</span>,
    },
  ];
  return (
    <ListPage
      title={t("nav.webhooks")}
      lead={t("webhooks.lead")}
      search={search}
      acts={<RedeliverButton />}
      head={<Failing merchantId={filters.merchantId} />}
      listTitle={t("common:webhooks.log")}
      listActions={<CsvButton path={PATH} query={asked} name="deliveries" session={operatorSession} />}
      filters={
        <>
          <SelectFilter
            label={t("record.status")}
            value={filters.status}
            options={STATUSES.map((one) => ({ value: one, label: t(`common:status.${one}`) }))}
            onFilter={search.set.status}
          />
          <SelectFilter
            label={t("common:webhooks.event")}
            value={filters.event}
            options={[...EVENTS, ...EVENTS_OF_TRACKERS].map((one) => ({ value: one, label: one }))}
            onFilter={search.set.event}
          />
          <MerchantFilter value={filters.merchantId} onFilter={search.set.merchantId} />
          <DaysFilter from={from} until={until} onFilter={search.filter} />
          {(filters.projectId !== undefined || filters.endpointId !== undefined) && (
            <Button
              variant="default"
              onClick={() => {
                search.filter({ projectId: "", endpointId: "" });
              }}
            >
              {t("record.allProjects")}
            </Button>
          )}
        </>
      }
      columns={columns}
      query={query}
      rowKey={(one) => one.deliveryId}
      href={(one) => `/webhooks/${one.deliveryId}`}
      {...newestFirst(search)}
      none={t("common:webhooks.none")}
      noneFiltered={t("record.noneFiltered")}
    />
  );
}
