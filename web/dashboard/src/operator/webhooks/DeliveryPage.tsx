import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { gatewayNow } from "../../api/clock";
import { usePathPart } from "../../ui/address";
import { Copyable } from "../../ui/Copyable";
import { Empty, ErrorNote } from "../../ui/Feedback";
import { showMilliseconds } from "../../ui/format";
import { Url } from "../../ui/InPieces";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { untilTried } from "../../ui/tried";
import { useAct } from "../../ui/useAct";
import { Moment, When } from "../../ui/When";
import { api, unwrap, useWords, type Schemas } from "../api";
import { MerchantLink } from "../merchants/MerchantLink";
import { usePermitted } from "../queries";
import { usePageOfId } from "../records/found";

type Delivery = Schemas["DeliveryOfMerchant"];

/** Of deliveries that are sent without being started, or are sent once. */
const STARTED: ReadonlySet<string> = new Set(["pending", "paused", "tested"]);

/** One delivery of a merchant's: what was sent, each attempt, and what was answered. */
export function DeliveryPage() {
  const { t, i18n } = useWords();
  const deliveryId = usePathPart("deliveryId");
  const query = useQuery({
    queryKey: ["delivery", "one", deliveryId],
    queryFn: async ({ signal }) => {
      const params = { path: { deliveryId } };
      return (await unwrap(api.GET("/api/admin/webhooks/deliveries/{deliveryId}", { params, signal }))).delivery;
    },
    // Changes tell of attempts that failed, and not of a first one that arrives.
    refetchInterval: ({ state }) => untilTried([state.data?.nextAttemptAt ?? null], gatewayNow()),
  });
  return (
    <QueryPage title={t("common:webhooks.delivery")} query={query}>
      {(one) => (
        <Page
          title={one.event}
          lead={
            <span className="row">
              <Status value={one.status} />
              <Copyable text={one.deliveryId}>
                <code>{one.deliveryId}</code>
              </Copyable>
              <When at={one.createdAt} />
            </span>
          }
          actions={<SendAgain delivery={one} />}
        >
          <Section title={t("common:payment.details")}>
            <Facts
              facts={[
                [t("record.merchant"), <MerchantLink key="merchant" of={one} />],
                [t("record.project"), one.projectName],
                [t("common:mode.title"), t(`common:mode.${one.mode}`)],
                [t("common:webhooks.url"), one.url === null ? null : <Url key="url" value={one.url} />],
                [t("common:webhooks.about"), <About key="about" id={one.resourceId} />],
                [
                  t("common:webhooks.delivered"),
                  one.deliveredAt === null ? null : <Moment key="at" at={one.deliveredAt} />,
                ],
                [
                  t("common:webhooks.next"),
                  one.nextAttemptAt === null ? null : <When key="next" at={one.nextAttemptAt} />,
                ],
              ]}
            />
          </Section>
          <Section title={t("common:webhooks.attempts")} flush>
            {one.attempts.length === 0 ? (
              <Empty title={t("common:webhooks.noAttempts")} />
            ) : (
              <ol className="timeline">
                {one.attempts.map((attempt) => (
                  <li key={attempt.number}>
                    <div className="row">
                      <b className="number">{attempt.statusCode ?? attempt.error}</b>
                      <span className="number muted">{showMilliseconds(attempt.durationMs, i18n.language)}</span>
                      <Moment at={attempt.attemptedAt} />
                    </div>
                    {attempt.responseBody !== null && attempt.responseBody !== "" && (
                      <code>{attempt.responseBody}</code>
                    )}
                  </li>
                ))}
              </ol>
            )}
          </Section>
          <Section title={t("common:webhooks.payload")}>
            <pre className="code" tabIndex={0}>
              {JSON.stringify(one.payload, null, 2)}
            </pre>
          </Section>
        </Page>
      )}
    </QueryPage>
  );
}

/** Has it sent again, whatever came of it. Until that has ended, nothing is started a second time. */
function SendAgain({ delivery: { deliveryId, status } }: { readonly delivery: Delivery }) {
  const { t } = useWords();
  const client = useQueryClient();
  const mayRedeliver = usePermitted("webhooks.redeliver");
  const again = useAct(async () => {
    const params = { path: { deliveryId } };
    await unwrap(api.POST("/api/admin/webhooks/deliveries/{deliveryId}/redeliver", { params }));
    await client.invalidateQueries({ queryKey: ["delivery"] });
  });
  if (!mayRedeliver || STARTED.has(status)) return null;
  return (
    <>
      {again.error !== null && <ErrorNote error={again.error} />}
      <Button variant="default" loading={again.isRunning} onClick={() => void again.run()}>
        {t("common:events.redeliver")}
      </Button>
    </>
  );
}

/** What was told of, and the way to its page, where it says whose it is. */
function About({ id }: { readonly id: string }) {
  const page = usePageOfId()(id);
  return page !== undefined ? <Link to={page}>{id}</Link> : id;
}
