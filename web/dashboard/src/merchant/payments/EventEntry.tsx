import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { Url } from "../../ui/InPieces";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { api, unwrap } from "../api";
import { isOpenEverywhere, Redelivered, useRedeliver } from "../developers/redeliver";
import { usePermitted, useProjectId } from "../project";
import type { Schemas } from "../queries";

/** What the merchant was told, where it went and what became of it, each with a page of its own. */
export function EventEntry({ event }: { readonly event: Schemas["EventAnswer"] }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const mayRedeliver = usePermitted("payments");
  const redeliver = useRedeliver(() => {
    const params = { path: { projectId, eventId: event.eventId } };
    const path = "/api/dashboard/projects/{projectId}/events/{eventId}/redeliver";
    return unwrap(api.POST(path, { params, body: {} }));
  });
  return (
    <li>
      <div className="row">
        <Link to={`/${projectId}/events/${event.eventId}`}>
          <b>{event.event}</b>
        </Link>
        <When at={event.createdAt} />
      </div>
      {event.deliveries.length === 0 && <div className="muted">{t("events.toNobody")}</div>}
      {event.deliveries.map((one, index) => (
        <div key={one.deliveryId} className="row muted">
          <Status value={one.status} />
          <Link to={`/${projectId}/webhooks/${one.deliveryId}`}>
            <Url value={one.url ?? one.deliveryId} />
          </Link>
          <span className="number">{t("events.attempts", { count: one.attempts })}</span>
          {one.deliveredAt !== null && <When at={one.deliveredAt} />}
          {mayRedeliver && index === event.deliveries.length - 1 && !isOpenEverywhere(event.deliveries) && (
            <Button
              size="compact-xs"
              variant="default"
              loading={redeliver.isRunning}
              onClick={() => void redeliver.run()}
            >
              {t("events.redeliver")}
            </Button>
          )}
        </div>
      ))}
      <Redelivered act={redeliver} of={event.deliveries} />
    </li>
  );
}
