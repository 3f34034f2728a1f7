import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { usePathPart } from "../../ui/address";
import { Copyable } from "../../ui/Copyable";
import { Empty } from "../../ui/Feedback";
import { showMilliseconds } from "../../ui/format";
import { Url } from "../../ui/InPieces";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { Moment, When } from "../../ui/When";
import { api, unwrap, useWords } from "../api";
import { usePageOfId } from "../records/found";

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
        >
          <Section title={t("common:payment.details")}>
            <Facts
              facts={[
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

/** What was told of, and the way to its page, where it says whose it is. */
function About({ id }: { readonly id: string }) {
  const page = usePageOfId()(id);
  return page !== undefined ? <Link to={page}>{id}</Link> : id;
}
