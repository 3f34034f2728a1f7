import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";
import type { PaymentDetail, Schemas } from "../queries";

import { EventEntry } from "./EventEntry";
import { AllEvents, useEventsOf } from "./PaymentEvents";

type Deposit = Schemas["DepositView"];

type Entry =
  | { readonly at: string; readonly kind: "created" }
  | { readonly at: string; readonly kind: "detected" | "confirmed"; readonly deposit: Deposit }
  | { readonly at: string; readonly kind: "event"; readonly event: Schemas["EventAnswer"] };

/** Return all that happened to a payment, the newest first. What happened at once stands as it was given. */
export function entriesOf(payment: PaymentDetail, events: readonly Schemas["EventAnswer"][]): readonly Entry[] {
  const entries: Entry[] = [
    ...events.map((event) => ({ at: event.createdAt, kind: "event", event }) as const),
    ...payment.deposits.flatMap((deposit): Entry[] => [
      ...(deposit.confirmedAt === null ? [] : [{ at: deposit.confirmedAt, kind: "confirmed", deposit } as const]),
      { at: deposit.seenAt, kind: "detected", deposit },
    ]),
    { at: payment.createdAt, kind: "created" },
  ];
  return entries.sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
}

interface TimelineProps {
  readonly projectId: string;
  readonly payment: PaymentDetail;
}

/** What happened to a payment: its deposits, their confirmation, what the merchant was told, and how that went. */
export function Timeline({ projectId, payment }: TimelineProps) {
  const { t } = useTranslation();
  const { paymentId } = payment;
  const query = useEventsOf({ projectId, paymentId, version: `${payment.status} ${payment.updatedAt}` });
  return (
    <Section
      title={t("payment.timeline")}
      flush
      actions={<ProjectCsv list="events" query={{ resourceId: paymentId }} />}
    >
      <QueryView query={query}>
        {({ events, isAll }) => (
          <>
            <ol className="timeline">
              {entriesOf(payment, events).map((one) =>
                one.kind === "event" ? (
                  <EventEntry key={one.event.eventId} event={one.event} />
                ) : (
                  <Happened key={keyOf(one)} entry={one} />
                ),
              )}
            </ol>
            {!isAll && <AllEvents projectId={projectId} paymentId={paymentId} />}
          </>
        )}
      </QueryView>
    </Section>
  );
}

type Other = Exclude<Entry, { readonly kind: "event" }>;

function keyOf(entry: Other): string {
  if (entry.kind === "created") return entry.kind;
  const { txHash, seenAt, amount } = entry.deposit;
  return `${entry.kind} ${txHash} ${seenAt} ${amount}`;
}

function Happened({ entry }: { readonly entry: Other }) {
  const { t } = useTranslation();
  return (
    <li>
      <div className="row">
        {entry.kind === "created" ? (
          <b>{t("payments.created")}</b>
        ) : (
          <>
            <b>{t("payment.deposit")}</b>
            <Status value={entry.kind} />
            <Amount value={entry.deposit.amount} token={entry.deposit.token} />
            <Address value={entry.deposit.txHash} />
          </>
        )}
        <When at={entry.at} />
      </div>
    </li>
  );
}
