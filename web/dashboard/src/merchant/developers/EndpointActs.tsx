import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { once } from "../../api/once";
import { Confirm } from "../../ui/Confirm";
import { Url } from "../../ui/InPieces";
import { useOpened } from "../../ui/useOpened";
import { api, unwrap } from "../api";
import { useProject, useProjectId } from "../project";

import { EventChoice } from "./EventChoice";
import { endpointsQuery, type Endpoint } from "./queries";
import { RotateSecret } from "./RotateSecret";
import { UrlField } from "./UrlField";

const BASE = "/api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}";

interface EndpointActsProps {
  readonly endpoint: Endpoint;
  readonly onSecret: (secret: string) => void;
}

/** What can be done with an endpoint: change it, pause and resume it, replace its secret, delete it. */
export function EndpointActs({ endpoint, onSecret }: EndpointActsProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const navigate = useNavigate();
  const { open, close, opener } = useOpened<"change" | "pause" | "resume" | "rotate" | "delete">();
  const params = { path: { projectId, endpointId: endpoint.endpointId } };
  const to = endpoint.paused ? "resume" : "pause";
  const changed = () => client.invalidateQueries({ queryKey: ["project", projectId] });

  async function rotate(overlapMinutes: number): Promise<void> {
    const { webhookSecret } = await once(`secret ${endpoint.endpointId}`, (idempotencyKey) =>
      unwrap(api.POST(`${BASE}/rotate-secret`, { params, body: { overlapMinutes, idempotencyKey } })),
    );
    onSecret(webhookSecret);
    await changed();
  }

  async function end(): Promise<void> {
    await unwrap(api.DELETE(BASE, { params }));
    await navigate({ to: `/${projectId}/webhooks` });
    await changed();
  }

  return (
    <>
      {opener("change", t("endpoint.change"))}
      {opener(to, t(`endpoint.${to}`))}
      {opener("rotate", t("settings.rotate"))}
      {opener("delete", t("endpoint.delete"))}
      {open === "change" && <Change endpoint={endpoint} onClose={close} />}
      {(open === "pause" || open === "resume") && (
        <Confirm
          title={t(`endpoint.${open}Title`)}
          act={t(`endpoint.${open}`)}
          onConfirm={async () => {
            await unwrap(api.PATCH(BASE, { params, body: { paused: open === "pause" } }));
            await changed();
          }}
          onClose={close}
        >
          <p>{t(`endpoint.${open}Words`)}</p>
        </Confirm>
      )}
      {open === "rotate" && (
        <RotateSecret
          name={endpoint.endpointId.slice(-6)}
          previousUntil={endpoint.previousSecretUntil}
          rotate={rotate}
          onClose={close}
        />
      )}
      {open === "delete" && (
        <Confirm
          title={t("endpoint.deleteTitle")}
          act={t("endpoint.delete")}
          typed={endpoint.endpointId.slice(-6)}
          isDangerous
          onConfirm={end}
          onClose={close}
        >
          <p>
            <Url value={endpoint.url} />
          </p>
          <p>{t("endpoint.deleteWords")}</p>
        </Confirm>
      )}
    </>
  );
}

interface ChangeProps {
  readonly endpoint: Endpoint;
  readonly onClose: () => void;
}

/** Sends what is different alone, so that what somebody else changes meanwhile stays. */
function Change({ endpoint, onClose }: ChangeProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const [url, setUrl] = useState(endpoint.url);
  const [events, setEvents] = useState<readonly string[] | null>(endpoint.events.length === 0 ? null : endpoint.events);
  const [before] = useState(endpoint);
  const { data } = useQuery(endpointsQuery(projectId));
  const others = (data ?? []).filter((one) => one.endpointId !== endpoint.endpointId);
  const known = [useProject()?.paymentWebhookUrl ?? null, ...others.map((one) => one.url)];
  return (
    <Confirm
      title={t("endpoint.changeTitle")}
      act={t("endpoint.change")}
      isBlocked={events?.length === 0}
      onConfirm={async () => {
        const params = { path: { projectId, endpointId: endpoint.endpointId } };
        const wanted = events ?? [];
        const isSame = wanted.length === before.events.length && wanted.every((one) => before.events.includes(one));
        const body = {
          ...(url.trim() === before.url ? {} : { url: url.trim() }),
          ...(isSame ? {} : { events: [...wanted] }),
        };
        await unwrap(api.PATCH(BASE, { params, body }));
        void client.invalidateQueries({ queryKey: ["project", projectId] });
      }}
      onClose={onClose}
    >
      <p>{t("endpoint.changeWords")}</p>
      <UrlField value={url} onText={setUrl} known={known} />
      <EventChoice events={events} onEvents={setEvents} />
    </Confirm>
  );
}
