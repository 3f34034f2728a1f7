import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { usePathPart } from "../../ui/address";
import { Copyable } from "../../ui/Copyable";
import { Empty, ErrorNote } from "../../ui/Feedback";
import { Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { useAct } from "../../ui/useAct";
import { When } from "../../ui/When";
import { api, unwrap } from "../api";
import { usePermitted, useProjectId } from "../project";

import { eventQuery, type Event, type EventAsSent } from "./eventQueries";

/** While one of a delivery's is under way, there is nothing to send again. */
const OPEN: ReadonlySet<string> = new Set(["pending", "paused"]);

/** Where what an event is about has a page. */
const PAGES: Readonly<Record<string, string>> = {
  payment: "payments",
  payout: "payouts",
  withdrawal: "withdrawals",
  refund: "refunds",
  exchange: "exchanges",
};

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
  const isOpen = event.deliveries.length > 0 && event.deliveries.every((one) => OPEN.has(one.status));
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
          <About event={event} />
        </span>
      }
      actions={
        usePermitted("payments") && (
          <Button
            variant="default"
            disabled={isOpen}
            loading={redeliver.isRunning}
            onClick={() => void redeliver.run()}
          >
            {t("events.redeliver")}
          </Button>
        )
      }
    >
      {redeliver.error !== null && <ErrorNote error={redeliver.error} />}
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

function useRedeliver(send: () => Promise<unknown>) {
  const client = useQueryClient();
  const projectId = useProjectId();
  return useAct(async () => {
    await send();
    void client.invalidateQueries({ queryKey: ["project", projectId] });
  });
}

function About({ event: { resource, resourceId } }: { readonly event: Event }) {
  const projectId = useProjectId();
  const page = PAGES[resource];
  if (page === undefined) return <code>{resourceId}</code>;
  return (
    <Link to={`/${projectId}/${page}/${resourceId}`}>
      <code>{resourceId}</code>
    </Link>
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
          <bdi dir="ltr" className="short" title={delivery.url ?? deliveryId}>
            {delivery.url ?? deliveryId}
          </bdi>
        </Link>
        {usePermitted("webhooks") && !OPEN.has(status) && (
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
      <div className="row muted">
        <span className="number">{t("events.attempts", { count: delivery.attempts })}</span>
        {delivery.deliveredAt !== null && <When at={delivery.deliveredAt} />}
        {delivery.nextAttemptAt !== null && (
          <span>
            {t("webhooks.next")}: <When at={delivery.nextAttemptAt} />
          </span>
        )}
      </div>
      {redeliver.error !== null && <ErrorNote error={redeliver.error} />}
    </li>
  );
}

/** What was sent, byte for byte, as the signature is of it; or indented, to be read. */
function Body({ text }: { readonly text: string }) {
  const { t } = useTranslation();
  const [isIndented, setIndented] = useState(false);
  return (
    <Section
      title={t("events.body")}
      actions={
        <>
          <Button
            variant="default"
            aria-pressed={isIndented}
            onClick={() => {
              setIndented(!isIndented);
            }}
          >
            {t("events.indent")}
          </Button>
          <Copyable text={text} label={t("events.body")}>
            {t("events.copyBody")}
          </Copyable>
        </>
      }
    >
      <pre className={isIndented ? "code" : "code whole"} tabIndex={0}>
        {isIndented ? JSON.stringify(JSON.parse(text), null, 2) : text}
      </pre>
    </Section>
  );
}
