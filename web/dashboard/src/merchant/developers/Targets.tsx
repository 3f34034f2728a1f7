import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Confirm } from "../../ui/Confirm";
import { Url } from "../../ui/InPieces";
import { None } from "../../ui/None";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { api, unwrap } from "../api";
import { usePermitted } from "../project";
import type { Project } from "../queries";

import { EventChoice } from "./EventChoice";
import { endpointsQuery, type Endpoint } from "./queries";
import { SecretOnce } from "./SecretOnce";
import { UrlField } from "./UrlField";
import { CheckChip } from "./Verified";

interface Made {
  readonly endpoint: Endpoint;
  readonly webhookSecret: string;
}

/** Where the project's events go: the default URL, and further endpoints with secrets and filters of their own. */
export function Targets({ project }: { readonly project: Project }) {
  const { t } = useTranslation();
  const { projectId } = project;
  const query = useQuery(endpointsQuery(projectId));
  const mayAdd = usePermitted("webhooks");
  const [isAdding, setAdding] = useState(false);
  const [made, setMade] = useState<Made | null>(null);
  return (
    <Section
      title={t("endpoint.list")}
      flush
      actions={
        mayAdd && (
          <Button
            variant="default"
            onClick={() => {
              setAdding(true);
            }}
          >
            {t("endpoint.add")}
          </Button>
        )
      }
    >
      {made !== null && (
        <div className="inset stack">
          <b>
            <Url value={made.endpoint.url} />
          </b>
          <SecretOnce
            secret={made.webhookSecret}
            onDone={() => {
              setMade(null);
            }}
          />
        </div>
      )}
      <QueryView query={query}>
        {(endpoints) => (
          <Plain
            label={t("endpoint.list")}
            rows={[project, ...endpoints]}
            rowKey={(one) => ("endpointId" in one ? one.endpointId : one.projectId)}
            columns={[
              {
                id: "url",
                title: t("webhooks.url"),
                isWide: true,
                cell: (one) => (
                  <>
                    {"endpointId" in one ? (
                      <Link to={`/${projectId}/webhooks/endpoints/${one.endpointId}`}>
                        <Url value={one.url} />
                      </Link>
                    ) : (
                      <Link to={`/${projectId}/settings`}>
                        {one.paymentWebhookUrl === null ? (
                          t("endpoint.noDefault")
                        ) : (
                          <Url value={one.paymentWebhookUrl} />
                        )}
                      </Link>
                    )}
                    {!("endpointId" in one) && <div className="muted">{t("endpoint.default")}</div>}
                  </>
                ),
              },
              {
                id: "events",
                title: t("endpoint.events"),
                cell: (one) => ("endpointId" in one ? <Heard events={one.events} /> : t("endpoint.all")),
              },
              {
                id: "check",
                title: t("verify.column"),
                cell: (one) =>
                  "endpointId" in one || one.paymentWebhookUrl !== null ? (
                    <CheckChip check={one.signatureCheck} />
                  ) : (
                    <None />
                  ),
              },
              {
                id: "state",
                title: t("payments.status"),
                cell: (one) => ("endpointId" in one ? <Status value={one.paused ? "paused" : "active"} /> : <None />),
              },
            ]}
          />
        )}
      </QueryView>
      {isAdding && (
        <Add
          projectId={projectId}
          known={[project.paymentWebhookUrl, ...(query.data ?? []).map((one) => one.url)]}
          onMade={setMade}
          onClose={() => {
            setAdding(false);
          }}
        />
      )}
    </Section>
  );
}

/** Which events, by name while they are few. */
export function Heard({ events }: { readonly events: readonly string[] }) {
  const { t } = useTranslation();
  const [first, second, third] = events;
  if (first === undefined) return <>{t("endpoint.all")}</>;
  if (third !== undefined) return <>{t("endpoint.count", { count: events.length })}</>;
  return <>{second === undefined ? first : `${first}, ${second}`}</>;
}

interface AddProps {
  readonly projectId: string;
  /** Where events go already. */
  readonly known: readonly (string | null)[];
  readonly onMade: (made: Made) => void;
  readonly onClose: () => void;
}

function Add({ projectId, known, onMade, onClose }: AddProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<readonly string[] | null>(null);
  return (
    <Confirm
      title={t("endpoint.addTitle")}
      act={t("endpoint.add")}
      isBlocked={events?.length === 0}
      onConfirm={async () => {
        const params = { path: { projectId } };
        const body = { url: url.trim(), events: [...(events ?? [])] };
        onMade(await unwrap(api.POST("/api/merchant/projects/{projectId}/webhook-endpoints", { params, body })));
        void client.invalidateQueries(endpointsQuery(projectId));
      }}
      onClose={onClose}
    >
      <p>{t("endpoint.addWords")}</p>
      <UrlField value={url} onText={setUrl} known={known} />
      <EventChoice events={events} onEvents={setEvents} />
    </Confirm>
  );
}
