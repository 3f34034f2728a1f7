import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { showMilliseconds } from "../../ui/format";
import { api, unwrap } from "../api";
import { usePathPart } from "../../ui/address";
import { Copyable } from "../../ui/Copyable";
import { Empty } from "../../ui/Feedback";
import { Url } from "../../ui/InPieces";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { Moment, When } from "../../ui/When";
import { About } from "../about";
import { usePermitted, useProjectId } from "../project";

import { Body } from "./Body";
import { deliveryQuery, type DeliveryAsSent } from "./queries";
import { isOpen, Redelivered, useRedeliver } from "./redeliver";

/** One delivery: what was sent, each attempt, and what was answered. */
export function DeliveryPage() {
  const projectId = useProjectId();
  const { t } = useTranslation();
  const query = useQuery(deliveryQuery(projectId, usePathPart("deliveryId")));
  return (
    <QueryPage title={t("webhooks.delivery")} query={query}>
      {(found) => <Shown projectId={projectId} found={found} />}
    </QueryPage>
  );
}

interface ShownProps {
  readonly projectId: string;
  readonly found: DeliveryAsSent;
}

function Shown({ projectId, found: { delivery, body } }: ShownProps) {
  const { t, i18n } = useTranslation();
  const mayRedeliver = usePermitted("webhooks");
  const redeliver = useRedeliver(() => {
    const params = { path: { projectId, deliveryId: delivery.deliveryId } };
    return unwrap(api.POST("/api/dashboard/projects/{projectId}/deliveries/{deliveryId}/redeliver", { params }));
  });
  return (
    <Page
      title={delivery.event}
      lead={
        <span className="row">
          <Status value={delivery.status} />
          <Copyable text={delivery.deliveryId}>
            <code>{delivery.deliveryId}</code>
          </Copyable>
          <When at={delivery.createdAt} />
        </span>
      }
      actions={
        mayRedeliver &&
        delivery.status !== "tested" &&
        !isOpen(delivery.status) && (
          <Button variant="default" loading={redeliver.isRunning} onClick={() => void redeliver.run()}>
            {t("events.redeliver")}
          </Button>
        )
      }
    >
      <Redelivered act={redeliver} of={[delivery]} />
      <Section title={t("payment.details")}>
        <Facts
          facts={[
            [t("webhooks.url"), delivery.url === null ? null : <Url key="url" value={delivery.url} />],
            [
              t("endpoint.one"),
              delivery.endpointId === null ? null : (
                <Link key="endpoint" to={`/${projectId}/webhooks/endpoints/${delivery.endpointId}`}>
                  {delivery.endpointId}
                </Link>
              ),
            ],
            [t("webhooks.about"), <About key="about" payload={delivery.payload} resourceId={delivery.resourceId} />],
            [
              t("events.one"),
              delivery.eventId === null ? null : (
                <Link key="event" to={`/${projectId}/events/${delivery.eventId}`}>
                  <code>{delivery.eventId}</code>
                </Link>
              ),
            ],
            [
              t("webhooks.delivered"),
              delivery.deliveredAt === null ? null : <Moment key="at" at={delivery.deliveredAt} />,
            ],
            [
              t("webhooks.next"),
              delivery.nextAttemptAt === null ? null : <When key="next" at={delivery.nextAttemptAt} />,
            ],
          ]}
        />
      </Section>
      <Section title={t("webhooks.attempts")} flush>
        {delivery.attempts.length === 0 ? (
          <Empty title={t("webhooks.noAttempts")} />
        ) : (
          <ol className="timeline">
            {delivery.attempts.map((one) => (
              <li key={one.number}>
                <div className="row">
                  <b className="number">{one.statusCode ?? one.error}</b>
                  <span className="number muted">{showMilliseconds(one.durationMs, i18n.language)}</span>
                  <Moment at={one.attemptedAt} />
                </div>
                {one.responseBody !== null && one.responseBody !== "" && <code>{one.responseBody}</code>}
              </li>
            ))}
          </ol>
        )}
      </Section>
      <Body text={body} />
    </Page>
  );
}
