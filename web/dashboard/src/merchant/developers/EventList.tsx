import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";

import { timesOf } from "../../ui/days";
import { EVENTS } from "../../ui/events";
import { DaysFilter, SelectFilter, TextFilter } from "../../ui/Filters";
import { Id } from "../../ui/Id";
import type { Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { chosenOf } from "../../ui/options";
import { newestFirst, useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";
import { usePermitted, useProjectId } from "../project";

import { eventListQuery, type Event } from "./eventQueries";
import { RedeliverFailed } from "./RedeliverFailed";

const SORTS = ["-createdAt", "createdAt"] as const;
const FILTERS = ["event", "resourceId", "from", "until", "sort"] as const;

function columnsOf(t: TFunction): readonly Column<Event>[] {
  return [
    { id: "created", title: t("payments.created"), sort: "createdAt", cell: (one) => <When at={one.createdAt} /> },
    { id: "event", title: t("webhooks.event"), cell: (one) => <code>{one.event}</code> },
    { id: "about", title: t("webhooks.about"), cell: (one) => <Id value={one.resourceId} /> },
    { id: "deliveries", title: t("webhooks.log"), cell: (one) => <Outcome event={one} /> },
  ];
}

/** All that a project was told, delivered or not, and the way to have it told again. */
export function EventList() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch(FILTERS);
  const { event, resourceId, from, until, sort } = search.filters;
  const times = timesOf(from, until);
  const asked = {
    ...(event === undefined ? {} : { event }),
    ...(resourceId === undefined ? {} : { resourceId }),
    ...times,
    ...chosenOf("sort", SORTS, sort),
  };
  const query = useQuery(eventListQuery(projectId, { page: search.page, ...asked }));
  const mayRedeliver = usePermitted("payments");
  const columns = useMemo(() => columnsOf(t), [t]);
  return (
    <ListPage
      title={t("events.title")}
      lead={t("events.lead")}
      search={search}
      filters={
        <>
          <SelectFilter
            label={t("webhooks.event")}
            value={event}
            options={EVENTS.map((one) => ({ value: one, label: one }))}
            onFilter={search.set.event}
          />
          <TextFilter label={t("trail.by.subject")} value={resourceId} onFilter={search.set.resourceId} />
          <DaysFilter from={from} until={until} onFilter={search.filter} />
        </>
      }
      csv={<ProjectCsv list="events" query={asked} />}
      acts={mayRedeliver && <RedeliverFailed from={times.from} />}
      columns={columns}
      query={query}
      rowKey={(one) => one.eventId}
      href={(one) => `/${projectId}/events/${one.eventId}`}
      {...newestFirst(search)}
      none={t("events.none")}
      noneFiltered={t("events.noneFiltered")}
    />
  );
}

/** What became of an event, once for each way in which its deliveries ended. */
function Outcome({ event }: { readonly event: Event }) {
  const statuses = [...new Set(event.deliveries.map((one) => one.status))];
  if (statuses.length === 0) return <Status value="no_target" />;
  return (
    <span className="row">
      {statuses.map((one) => (
        <Status key={one} value={one} />
      ))}
    </span>
  );
}
