import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { usePathPart } from "../../ui/address";
import { Copyable } from "../../ui/Copyable";
import { Empty } from "../../ui/Feedback";
import { Url } from "../../ui/InPieces";
import { Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { api, unwrap } from "../api";
import { About } from "../about";
import { usePermitted, useProjectId } from "../project";

import { Body } from "./Body";
import { eventQuery, type Event, type EventAsSent } from "./eventQueries";
import { isOpen, isOpenEverywhere, Redelivered, useRedeliver } from "./redeliver";

/** One event: what it is about, where it went, and its body. */
export function EventPage() {
  const { t } = useTranslation();
  const query = useQuery(eventQuery(useProjectId(), usePathPart("eventId")));
  return (
    <QueryPage title={t("events.one")} query={query}>
      {(found) => <Shown found={found} />}
    </QueryPage>
  );
}

function Shown({ found: { event, body } }: { readonly found: EventAsSent }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const redeliver = useRedeliver(() => {
    const params = { path: { projectId, eventId: event.eventId } };
    const path = "/api/dashboard/projects/{projectId}/events/{eventId}/redeliver";
    return unwrap(api.POST(path, { params, body: {} }));
  });
  return (
    <Page
      title={t("events.one")}
      tab={event.event}
      lead={
        <span className="row">
          <code>{event.event}</code>
          <Copyable text={event.eventId}>
            <code>{event.eventId}</code>
          </Copyable>
          <When at={event.createdAt} />
          <About payload={event.payload} kind={event.resource} resourceId={event.resourceId} />
        </span>
      }
      actions={
        usePermitted("payments") && (
          <Button
            variant="default"
            disabled={isOpenEverywhere(event.deliveries)}
            loading={redeliver.isRunning}
            onClick={() => void redeliver.run()}
          >
            {t("events.redeliver")}
          </Button>
        )
      }
    >
      <Redelivered act={redeliver} of={event.deliveries} />
      <Section title={t("webhooks.log")} flush>
        {event.deliveries.length === 0 ? (
          <Empty title={t("events.toNobody")} />
        ) : (
          <ol className="timeline">
            {event.deliveries.map((one) => (
              <Delivery key={one.deliveryId} delivery={one} />
            ))}
          </ol>
        )}
      </Section>
      <Body text={body} />
    </Page>
  );
}

function Delivery({ delivery }: { readonly delivery: Event["deliveries"][number] }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const { deliveryId, status } = delivery;
  const redeliver = useRedeliver(() => {
    const params = { path: { projectId, deliveryId } };
    return unwrap(api.POST("/api/dashboard/projects/{projectId}/deliveries/{deliveryId}/redeliver", { params }));
  });
  return (
    <li>
      <div className="row">
        <Status value={status} />
        <Link to={`/${projectId}/webhooks/${deliveryId}`}>
          <Url value={delivery.url ?? deliveryId} />
        </Link>
      </div>
      <div className="row muted">
        <span className="number">{t("events.attempts", { count: delivery.attempts })}</span>
        {delivery.deliveredAt !== null && <When at={delivery.deliveredAt} />}
        {delivery.nextAttemptAt !== null && (
          <span>
            {t("webhooks.next")}: <When at={delivery.nextAttemptAt} />
          </span>
        )}
        {usePermitted("webhooks") && !isOpen(status) && (
          <Button
            size="compact-xs"
            variant="default"
            loading={redeliver.isRunning}
            onClick={() => void redeliver.run()}
          >
            {t("events.redeliverHere")}
          </Button>
        )}
      </div>
      <Redelivered act={redeliver} of={[delivery]} />
    </li>
  );
}
