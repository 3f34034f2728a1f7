/** What webhooks tell of. */
import type { components } from "../api/generated/dashboard";

type Event = components["schemas"]["DeliveryAnswer"]["event"];

/** Of nothing that happened: what a check of signatures sends. */
export const TEST = "webhook.test";

/** No endpoint is told of them: a tracker is. */
type OfTrackers = `transaction.${string}`;

/** Every event that a project can be told of, in the order in which a shop meets them. */
const KNOWN = {
  "payment.detected": true,
  "payment.confirming": true,
  "payment.paid": true,
  "payment.overpaid": true,
  "payment.expired": true,
  "payment.refunded": true,
  "payment.rate_recalculated": true,
  "payment.partial": true,
  "payment.underpaid": true,
  "payment.failed": true,
  "payment.held": true,
  "payout.completed": true,
  "payout.failed": true,
  "withdrawal.completed": true,
  "withdrawal.failed": true,
  "account.deposit.received": true,
  "account.deposit.confirmed": true,
  "account.deposit.orphaned": true,
  "account.deposit.held": true,
  "refund.sent": true,
  "refund.completed": true,
  "refund.failed": true,
  "exchange.succeeded": true,
  "exchange.failed": true,
} as const satisfies Record<Exclude<Event, typeof TEST | OfTrackers>, true>;

export const EVENTS = Object.keys(KNOWN);

const KNOWN_OF_TRACKERS = {
  "transaction.detected": true,
  "transaction.confirmed": true,
  "transaction.orphaned": true,
} as const satisfies Record<Extract<Event, OfTrackers>, true>;

/** Every event that a tracker is told of. */
export const EVENTS_OF_TRACKERS = Object.keys(KNOWN_OF_TRACKERS);
