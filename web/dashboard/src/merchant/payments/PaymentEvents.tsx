import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { Empty } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { ProjectCsv } from "../ProjectCsv";
import { untilEventTried } from "../developers/eventQueries";
import { eventsQuery } from "../queries";

import { EventEntry } from "./EventEntry";

interface PaymentEventsProps {
  readonly projectId: string;
  readonly paymentId: string;
  /** What of it is new at every change: then there may be another event. */
  readonly version: string;
}

/** Return what asks for the events of something, anew at every version of it. */
export function useEventsOf({ projectId, paymentId, version }: PaymentEventsProps) {
  const base = eventsQuery(projectId, paymentId);
  return useQuery({
    ...base,
    queryKey: [...base.queryKey, version],
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => untilEventTried(state.data?.events ?? []),
  });
}

/** What the merchant was told of something, whether it arrived, and the way to tell it again. */
export function PaymentEvents(props: PaymentEventsProps) {
  const { t } = useTranslation();
  const { projectId, paymentId } = props;
  return (
    <Section title={t("events.title")} flush actions={<ProjectCsv list="events" query={{ resourceId: paymentId }} />}>
      <QueryView query={useEventsOf(props)}>
        {({ events, isAll }) =>
          events.length === 0 ? (
            <Empty title={t("events.none")} />
          ) : (
            <>
              <ol className="timeline">
                {events.map((one) => (
                  <EventEntry key={one.eventId} event={one} />
                ))}
              </ol>
              {!isAll && <AllEvents projectId={projectId} paymentId={paymentId} />}
            </>
          )
        }
      </QueryView>
    </Section>
  );
}

/** Leads to those that this page has no room for. */
export function AllEvents({ projectId, paymentId }: Omit<PaymentEventsProps, "version">) {
  const { t } = useTranslation();
  return (
    <p className="muted">
      {t("events.newest")}{" "}
      <Link to={`/${projectId}/events`} search={{ resourceId: paymentId }}>
        {t("events.all")}
      </Link>
    </p>
  );
}
