import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { usePathPart } from "../../ui/address";
import { Copyable } from "../../ui/Copyable";
import { showList } from "../../ui/format";
import { Url } from "../../ui/InPieces";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { Moment, When } from "../../ui/When";
import { api, unwrap } from "../api";
import { usePermitted, useProjectId } from "../project";

import { askedOf, DeliveryLog, LOG_FILTERS } from "./DeliveryLog";
import { EndpointActs } from "./EndpointActs";
import { endpointDeliveriesQuery, endpointQuery, type Endpoint } from "./queries";
import { SecretOnce } from "./SecretOnce";
import { SendTest } from "./SendTest";
import { Verified } from "./Verified";

/** One endpoint: what it hears of, a try of it, and all that it was sent. */
export function EndpointPage() {
  const { t } = useTranslation();
  const query = useQuery(endpointQuery(useProjectId(), usePathPart("endpointId")));
  return (
    <QueryPage title={t("endpoint.one")} query={query}>
      {(endpoint) => <Shown endpoint={endpoint} />}
    </QueryPage>
  );
}

function Shown({ endpoint }: { readonly endpoint: Endpoint }) {
  const { t, i18n } = useTranslation();
  const projectId = useProjectId();
  const mayManage = usePermitted("webhooks");
  const [secret, setSecret] = useState<string | null>(null);
  const { endpointId } = endpoint;
  return (
    <Page
      title={t("endpoint.one")}
      tab={endpoint.url}
      lead={
        <span className="row">
          <Status value={endpoint.paused ? "paused" : "active"} />
          <Copyable text={endpointId}>
            <code>{endpointId}</code>
          </Copyable>
          <When at={endpoint.createdAt} />
        </span>
      }
      actions={mayManage && <EndpointActs endpoint={endpoint} onSecret={setSecret} />}
    >
      {secret !== null && (
        <Section title={t("projects.secret")}>
          <SecretOnce
            secret={secret}
            onDone={() => {
              setSecret(null);
            }}
          />
        </Section>
      )}
      <Section title={t("payment.details")}>
        <Facts
          facts={[
            [t("webhooks.url"), <Url key="url" value={endpoint.url} />],
            [
              t("endpoint.events"),
              endpoint.events.length === 0 ? t("endpoint.all") : showList(endpoint.events, i18n.language),
            ],
            [t("endpoint.rotated"), <When key="rotated" at={endpoint.secretRotatedAt} />],
            [
              t("endpoint.previous"),
              endpoint.previousSecretUntil === null ? null : (
                <Moment key="previous" at={endpoint.previousSecretUntil} />
              ),
            ],
          ]}
        />
      </Section>
      <Verified endpointId={endpointId} check={endpoint.signatureCheck} />
      {mayManage && (
        <SendTest
          words={t("endpoint.testWords")}
          send={(event) => {
            const params = { path: { projectId, endpointId } };
            const path = "/api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/test";
            return unwrap(api.POST(path, { params, body: { event } }));
          }}
        />
      )}
      <Log projectId={projectId} endpointId={endpointId} />
    </Page>
  );
}

function Log({ projectId, endpointId }: { readonly projectId: string; readonly endpointId: string }) {
  const search = useListSearch(LOG_FILTERS);
  const query = useQuery(endpointDeliveriesQuery(projectId, endpointId, askedOf(search)));
  const csv = `/api/merchant/projects/${projectId}/webhook-endpoints/${endpointId}/deliveries`;
  return <DeliveryLog query={query} search={search} csv={csv} />;
}
