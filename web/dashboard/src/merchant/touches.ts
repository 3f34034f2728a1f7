import type { Change } from "../api/live";

/** Which queries of a project show things of a kind of change. */
const SHOWN_IN: Readonly<Record<string, readonly string[]>> = {
  payment: ["payments", "payment", "events", "first-steps", "overview"],
  deposit: ["payments", "payment", "overview"],
  resolution: ["resolutions", "payment", "overview"],
  payout: ["payouts", "payout", "events", "overview"],
  refund: ["refunds", "payment", "events", "overview"],
  delivery: ["deliveries", "delivery", "events"],
  withdrawal: ["withdrawals", "withdrawal", "events", "overview"],
  exchange: ["exchanges", "exchange", "events"],
  account_deposit: ["account", "account-deposits", "account-balances", "overview"],
  collection: ["collections"],
  tracker: ["trackers", "tracker", "tracker-part"],
  balance: ["wallet", "coins", "overview"],
};

/** Which queries of the whole merchant show things of a kind of change. */
const SHOWN_BESIDE: Readonly<Record<string, readonly string[]>> = {
  member: ["members", "me"],
  invitation: ["invitations"],
};

/** Say whether a query shows something of a change. What belongs to no project concerns every project. */
export function touches(key: readonly unknown[], { kind, projectId }: Change): boolean {
  const [of, project, what] = key;
  if (SHOWN_BESIDE[kind]?.some((one) => one === of)) return true;
  if (of !== "project" || (projectId !== undefined && projectId !== project)) return false;
  return SHOWN_IN[kind]?.some((one) => one === what) ?? false;
}
