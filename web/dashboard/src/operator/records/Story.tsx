import { Link } from "@tanstack/react-router";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { Empty } from "../../ui/Feedback";
import { useMeaning } from "../../ui/Meaning";
import { Facts, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { useWords, type Schemas } from "../api";
import { Height } from "../chains/ChainsPage";
import { Signed } from "../queue/Signed";
import { WaitsFor } from "../queue/WaitsFor";

import type { Story } from "./kinds";

/** What came of it: on the chain, and at the merchant's server. */
export function StoryView({ story }: { readonly story: Story }) {
  return (
    <>
      {story.of === "payment" ? (
        <>
          <Deposits deposits={story.deposits} />
          {story.refunds.length > 0 && <Refunds refunds={story.refunds} token={story.token} />}
        </>
      ) : (
        <Sent story={story} />
      )}
      <Events events={story.events} />
    </>
  );
}

function Deposits({ deposits }: { readonly deposits: readonly Schemas["DepositOfPayment"][] }) {
  const { t } = useWords();
  return (
    <Section title={t("nav.deposits")} flush>
      {deposits.length === 0 ? (
        <Empty title={t("common:payment.noDeposits")} />
      ) : (
        <Plain
          label={t("nav.deposits")}
          rows={deposits}
          rowKey={(one) => one.depositId}
          columns={[
            {
              id: "seen",
              title: t("record.seen"),
              cell: (one) => (
                <Link to={`/deposits/${one.depositId}`}>
                  <When at={one.firstSeenAt} />
                </Link>
              ),
            },
            { id: "status", title: t("record.status"), cell: (one) => <Status value={one.status} /> },
            {
              id: "confirmations",
              title: t("record.confirmations"),
              cell: (one) => (
                <span className="number">
                  {t("common:ui.of", { value: one.confirmations, max: one.requiredConfirmations })}
                </span>
              ),
            },
            { id: "tx", title: t("record.tx"), cell: (one) => <Address value={one.txHash} /> },
            {
              id: "amount",
              title: t("record.amount"),
              atEnd: true,
              cell: (one) => <Amount value={one.amount} token={one.token} />,
            },
          ]}
        />
      )}
    </Section>
  );
}

interface RefundsProps {
  readonly refunds: readonly Schemas["SentForPayment"][];
  /** What the payment was made in, and so goes back. */
  readonly token: string;
}

function Refunds({ refunds, token }: RefundsProps) {
  const { t } = useWords();
  return (
    <Section title={t("nav.refunds")} flush>
      <Plain
        label={t("nav.refunds")}
        rows={refunds}
        rowKey={(one) => one.refundId}
        columns={[
          {
            id: "created",
            title: t("common:payments.created"),
            cell: (one) => (
              <Link to={`/refunds/${one.refundId}`}>
                <When at={one.createdAt} />
              </Link>
            ),
          },
          { id: "status", title: t("record.status"), cell: (one) => <Status value={one.status} /> },
          {
            id: "amount",
            title: t("record.amount"),
            atEnd: true,
            cell: (one) => <Amount value={one.amount} token={token} />,
          },
        ]}
      />
    </Section>
  );
}

function Sent({ story }: { readonly story: Schemas["SentStory"] }) {
  const meaning = useMeaning();
  const { t } = useWords();
  const hasEnded = story.state === "done" || story.state === "failed";
  return (
    <Section title={t("record.transactions")} flush>
      {(story.state !== null || story.reason !== null) && (
        <div className="inset">
          <Facts
            facts={[
              [t("record.state"), story.state === null ? null : meaning("intent", story.state)],
              [
                t("record.why"),
                story.reason === null ? null : (
                  <WaitsFor
                    key="why"
                    what={{ code: story.reason, text: story.reason.replaceAll("_", " "), until: null }}
                  />
                ),
              ],
              [t("record.due"), story.dueAt === null || hasEnded ? null : <When key="due" at={story.dueAt} />],
            ]}
          />
        </div>
      )}
      <Signed
        transactions={story.transactions}
        hasFailed={story.state === "failed"}
        columns={[
          {
            id: "block",
            title: t("record.block"),
            cell: (one) => <Height value={one.blockNumber} />,
          },
        ]}
      />
    </Section>
  );
}

function Events({ events }: { readonly events: readonly Schemas["EventTold"][] }) {
  const { t } = useWords();
  return (
    <Section title={t("common:events.title")} flush>
      {events.length === 0 ? (
        <Empty title={t("common:events.none")} />
      ) : (
        <Plain
          label={t("common:events.title")}
          rows={events}
          rowKey={(one) => one.eventId}
          columns={[
            { id: "at", title: t("common:payments.created"), cell: (one) => <When at={one.createdAt} /> },
            { id: "event", title: t("common:webhooks.event"), cell: (one) => one.event },
            {
              id: "told",
              title: t("record.delivered"),
              cell: (one) => (
                <span className="number">{t("common:ui.of", { value: one.delivered, max: one.deliveries })}</span>
              ),
            },
          ]}
        />
      )}
    </Section>
  );
}
