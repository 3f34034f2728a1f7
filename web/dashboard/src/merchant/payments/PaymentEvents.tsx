import { Button } from "@mantine/core";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { Empty, ErrorNote } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";
import { usePermitted } from "../project";
import { eventsQuery, type Schemas } from "../queries";

interface PaymentEventsProps {
  readonly projectId: string;
  readonly paymentId: string;
  /** What of it is new at every change: then there may be another event. */
  readonly version: string;
}

/** What the merchant was told of a payment, whether it arrived, and the way to tell it again. */
export function PaymentEvents({ projectId, paymentId, version }: PaymentEventsProps) {
  const { t } = useTranslation();
  const base = eventsQuery(projectId, paymentId);
  const query = useQuery({ ...base, queryKey: [...base.queryKey, version], placeholderData: keepPreviousData });
  return (
    <Section title={t("events.title")} flush actions={<ProjectCsv list="events" query={{ resourceId: paymentId }} />}>
      <QueryView query={query}>
        {(events) =>
          events.length === 0 ? (
            <Empty title={t("events.none")} />
          ) : (
            <ol className="timeline">
              {events.map((one) => (
                <Event key={one.eventId} projectId={projectId} event={one} />
              ))}
            </ol>
          )
        }
      </QueryView>
    </Section>
  );
}

function Event({ projectId, event }: { readonly projectId: string; readonly event: Schemas["EventAnswer"] }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const mayRedeliver = usePermitted("payments");
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);

  async function redeliver(): Promise<void> {
    setSending(true);
    setError(null);
    try {
      const params = { path: { projectId, eventId: event.eventId } };
      const path = "/api/dashboard/projects/{projectId}/events/{eventId}/redeliver";
      await unwrap(api.POST(path, { params, body: {} }));
      void client.invalidateQueries({ queryKey: ["project", projectId, "events"] });
    } catch (refused) {
      setError(refused);
    } finally {
      setSending(false);
    }
  }

  return (
    <li>
      <div className="row">
        <b>{event.event}</b>
        <When at={event.createdAt} />
        {mayRedeliver && event.deliveries.length > 0 && (
          <Button size="compact-xs" variant="default" loading={isSending} onClick={() => void redeliver()}>
            {t("events.redeliver")}
          </Button>
        )}
      </div>
      {event.deliveries.length === 0 && <div className="muted">{t("events.toNobody")}</div>}
      {event.deliveries.map((one) => (
        <div key={one.deliveryId} className="row muted">
          <Status value={one.status} />
          <span>{one.url}</span>
          <span className="number">{t("events.attempts", { count: one.attempts })}</span>
        </div>
      ))}
      {error !== null && <ErrorNote error={error} />}
    </li>
  );
}
