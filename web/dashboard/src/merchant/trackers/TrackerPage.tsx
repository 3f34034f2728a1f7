import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { usePathPart } from "../../ui/address";
import { Copyable } from "../../ui/Copyable";
import { numbers } from "../../ui/format";
import { Url } from "../../ui/InPieces";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage, QueryView } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { usePermitted, useProjectId } from "../project";

import { Movements } from "./Movements";
import { Past } from "./Past";
import { tokenQuery, trackerQuery, type Tracker, type TrackerDetail } from "./queries";
import { Setup } from "./Setup";
import { TrackerActs } from "./TrackerActs";
import { Watched } from "./Watched";

const POLL_MS = 5_000;

/** One tracker: what it watches, what moved there, and how far its past is read. */
export function TrackerPage() {
  const { t } = useTranslation();
  const query = useQuery({
    ...trackerQuery(useProjectId(), usePathPart("webhookId")),
    refetchInterval: ({ state }) => (state.data?.history?.state === "reading" ? POLL_MS : false),
  });
  return (
    <QueryPage title={t("tracker.one")} query={query}>
      {(tracker) => <Shown tracker={tracker} />}
    </QueryPage>
  );
}

function Shown({ tracker }: { readonly tracker: TrackerDetail }) {
  const { t, i18n } = useTranslation();
  const mayManage = usePermitted("trackers");
  const number = numbers(i18n.language);
  const max = number.format(tracker.maxAddresses);
  return (
    <Page
      title={tracker.name}
      lead={
        <span className="row">
          <Status value={tracker.isActive ? "active" : "inactive"} />
          <Copyable text={tracker.webhookId}>
            <code>{tracker.webhookId}</code>
          </Copyable>
          <When at={tracker.createdAt} />
        </span>
      }
      actions={mayManage && <TrackerActs tracker={tracker} />}
    >
      <Section title={t("payment.details")}>
        <Facts
          facts={[
            [t("webhooks.url"), <Url key="url" value={tracker.url} />],
            [t("payments.chain"), <ChainName key="chain" of={tracker.chain} />],
            [t("tracker.addresses"), t("ui.of", { value: number.format(tracker.addresses), max })],
            [
              t("tracker.past"),
              tracker.readsPast
                ? t("tracker.pastTold", { block: number.format(tracker.startBlock) })
                : t("tracker.pastNot"),
            ],
            [
              t("payment.metadata"),
              tracker.metadataText === null ? null : <code key="metadata">{tracker.metadataText}</code>,
            ],
          ]}
        />
      </Section>
      {tracker.history !== null && <Past tracker={tracker} history={tracker.history} mayManage={mayManage} />}
      {mayManage ? <Inside tracker={tracker} /> : <p className="muted">{t("tracker.closed")}</p>}
    </Page>
  );
}

/** What is in a tracker: the API gives it to whoever holds the tracker's token, which those who manage it may read. */
function Inside({ tracker }: { readonly tracker: Tracker }) {
  const query = useQuery(tokenQuery(useProjectId(), tracker.webhookId));
  // For as long as the page is there: what is added to is not taken away from under the pointer.
  const [wasEmpty] = useState(tracker.addresses === 0);
  return (
    <QueryView query={query}>
      {(token) => (
        <>
          {/* Nothing moves before there are any, and nothing else is to be done first. */}
          {wasEmpty && <Watched tracker={tracker} token={token} />}
          <Setup tracker={tracker} token={token} />
          <Movements tracker={tracker} token={token} />
          {!wasEmpty && <Watched tracker={tracker} token={token} />}
        </>
      )}
    </QueryView>
  );
}
