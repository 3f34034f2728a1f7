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
import { LeftOut } from "./LeftOut";
import { AllEvents, useEventsOf } from "./PaymentEvents";

type Event = Schemas["EventAnswer"];
type Deposit = Schemas["DepositView"] | Schemas["OrphanedDeposit"];

interface Happening {
  readonly at: string;
  readonly key: string;
}

type Entry = Happening &
  (
    | { readonly kind: "created" }
    | { readonly kind: "detected" | "confirmed" | "orphaned"; readonly deposit: Deposit }
    | { readonly kind: "event"; readonly event: Event }
  );

/** Return all that happened to a payment, the newest first. What happened at once stands as it was given. */
export function entriesOf(payment: PaymentDetail, events: readonly Event[]): readonly Entry[] {
  const entries: Entry[] = [
    ...events.map((event) => ({ at: event.createdAt, key: event.eventId, kind: "event", event }) as const),
    ...payment.orphanedDeposits.flatMap((one) => [
      { at: one.orphanedAt, key: `orphaned ${one.depositId}`, kind: "orphaned", deposit: one } as const,
      ...seen(one),
    ]),
    ...payment.deposits.flatMap(seen),
    { at: payment.createdAt, key: "created", kind: "created" },
  ];
  return entries.sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
}

/** Return that a deposit had its confirmations, where it had, and that it was seen. */
function seen(deposit: Deposit): readonly Entry[] {
  const { depositId, seenAt, confirmedAt } = deposit;
  const detected = { at: seenAt, key: `detected ${depositId}`, kind: "detected", deposit } as const;
  if (confirmedAt === null) return [detected];
  return [{ at: confirmedAt, key: `confirmed ${depositId}`, kind: "confirmed", deposit }, detected];
}

interface TimelineProps {
  readonly projectId: string;
  readonly payment: PaymentDetail;
}

/** What happened to a payment: its deposits, their confirmation, what the merchant was told, and how that went. */
export function Timeline({ projectId, payment }: TimelineProps) {
  const { t } = useTranslation();
  const { paymentId, depositsLeftOut, orphanedDepositsLeftOut } = payment;
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
                  <EventEntry key={one.key} event={one.event} />
                ) : (
                  <Happened key={one.key} entry={one} />
                ),
              )}
            </ol>
            <LeftOut count={depositsLeftOut + orphanedDepositsLeftOut} />
            {!isAll && <AllEvents projectId={projectId} paymentId={paymentId} />}
          </>
        )}
      </QueryView>
    </Section>
  );
}

function Happened({ entry }: { readonly entry: Exclude<Entry, { readonly kind: "event" }> }) {
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
            {!entry.deposit.counted && <span className="muted">{t("payment.notCounted")}</span>}
            <Address value={entry.deposit.txHash} />
          </>
        )}
        <When at={entry.at} />
      </div>
    </li>
  );
}
