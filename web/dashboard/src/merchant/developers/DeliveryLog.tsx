import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { CsvButton } from "../../ui/CsvButton";
import { EVENTS, TEST } from "../../ui/events";
import { NoneListed } from "../../ui/Feedback";
import { Filters, SelectFilter } from "../../ui/Filters";
import { showMilliseconds } from "../../ui/format";
import { Id } from "../../ui/Id";
import { Url } from "../../ui/InPieces";
import { List, type Column, type ListQuery } from "../../ui/List";
import { chosenOf } from "../../ui/options";
import { None } from "../../ui/None";
import { Section } from "../../ui/Page";
import { newestFirst, type ListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { merchantSession } from "../api";
import { useProjectId } from "../project";

import type { Delivery, DeliveryFilters } from "./queries";

export const LOG_FILTERS = ["status", "event", "resourceId", "sort"] as const;
type Search = ListSearch<(typeof LOG_FILTERS)[number]>;

const STATUSES = ["pending", "paused", "delivered", "dropped", "no_target", "cancelled", "tested"] as const;
const SORTS = ["createdAt", "-createdAt"] as const;

/** Return what the log is asked for, by what stands in the page's address. */
export function askedOf({ page, filters }: Search): DeliveryFilters {
  const { event, resourceId } = filters;
  return {
    page,
    ...chosenOf("status", STATUSES, filters.status),
    ...chosenOf("sort", SORTS, filters.sort),
    ...(event === undefined ? {} : { event }),
    ...(resourceId === undefined ? {} : { resourceId }),
  };
}

interface DeliveryLogProps {
  readonly query: ListQuery<Delivery>;
  readonly search: Search;
  /** Where the API has it as a file. */
  readonly csv: string;
  /** Whether it is of several targets. */
  readonly showsUrl?: boolean;
}

/** What was sent, and what was answered. Each delivery has a page of its own. */
export function DeliveryLog({ query, search, csv, showsUrl = false }: DeliveryLogProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const { filters } = search;
  const columns: readonly Column<Delivery>[] = [
    { id: "created", title: t("payments.created"), sort: "createdAt", cell: (one) => <When at={one.createdAt} /> },
    { id: "event", title: t("webhooks.event"), cell: (one) => one.event },
    { id: "status", title: t("payments.status"), cell: (one) => <Status value={one.status} /> },
    { id: "answer", title: t("webhooks.answer"), cell: (one) => <Answer delivery={one} /> },
    showsUrl
      ? {
          id: "url",
          title: t("webhooks.url"),
          isWide: true,
          cell: (one) => (one.url === null ? <None /> : <Url value={one.url} />),
        }
      : { id: "about", title: t("webhooks.about"), cell: (one) => <Id value={one.resourceId} /> },
  ];
  return (
    <Section
      title={t("webhooks.log")}
      flush
      actions={<CsvButton path={csv} query={filters} name="deliveries" session={merchantSession} />}
    >
      <Filters label={t("webhooks.log")}>
        <SelectFilter
          label={t("payments.status")}
          value={filters.status}
          options={STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) }))}
          onFilter={search.set.status}
        />
        <SelectFilter
          label={t("webhooks.event")}
          value={filters.event}
          options={[...EVENTS, TEST].map((one) => ({ value: one, label: one }))}
          onFilter={search.set.event}
        />
        {filters.resourceId !== undefined && (
          <Button
            variant="default"
            onClick={() => {
              search.filter({ resourceId: "" });
            }}
          >
            {t("webhooks.ofAll")}
          </Button>
        )}
      </Filters>
      <List
        label={t("webhooks.log")}
        columns={columns}
        query={query}
        rowKey={(one) => one.deliveryId}
        href={(one) => `/${projectId}/webhooks/${one.deliveryId}`}
        {...newestFirst(search)}
        onPage={search.goTo}
        isFiltered={search.isFiltered}
        empty={<NoneListed search={search} filtered={t("trail.noneFiltered")} title={t("webhooks.none")} />}
      />
    </Section>
  );
}

function Answer({ delivery }: { readonly delivery: Delivery }) {
  const { i18n } = useTranslation();
  const last = delivery.attempts.at(-1);
  if (last === undefined) return <None />;
  return (
    <span className="number">
      {last.statusCode ?? last.error} · {showMilliseconds(last.durationMs, i18n.language)}
    </span>
  );
}
