import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { Page } from "../../ui/Page";
import { useListSearch } from "../../ui/search";
import { api, unwrap } from "../api";
import { usePermitted, useProject, useProjectId } from "../project";

import { askedOf, DeliveryLog, LOG_FILTERS } from "./DeliveryLog";
import { deliveriesQuery } from "./queries";
import { SendTest } from "./SendTest";
import { Targets } from "./Targets";
import { Verified } from "./Verified";

/** What the project's servers are told: where it goes, a try, and the log of all that was sent. */
export function WebhooksPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const project = useProject();
  const hasUrl = typeof project?.paymentWebhookUrl === "string";
  const search = useListSearch(LOG_FILTERS);
  const query = useQuery(deliveriesQuery(projectId, askedOf(search)));
  return (
    <Page title={t("webhooks.title")}>
      {project !== null && <Targets project={project} />}
      {hasUrl && project.webhookSigning && <Verified endpointId={null} check={project.signatureCheck} />}
      {usePermitted("webhooks") && hasUrl && (
        <SendTest
          words={t("webhooks.testWords")}
          send={(event) => {
            const params = { path: { projectId } };
            return unwrap(api.POST("/api/merchant/projects/{projectId}/test-webhook", { params, body: { event } }));
          }}
        />
      )}
      <DeliveryLog query={query} search={search} csv={`/api/dashboard/projects/${projectId}/deliveries`} showsUrl />
    </Page>
  );
}
