import type { Change } from "../api/live";

/** What begins the keys of the queries that show things of a kind of change. */
const SHOWN_IN: Readonly<Record<string, readonly string[]>> = {
  payment: ["payments"],
  deposit: ["deposits", "payments"],
  account_deposit: ["deposits"],
  resolution: ["resolution", "deposits"],
  payout: ["payouts"],
  refund: ["refunds", "payments"],
  withdrawal: ["withdrawals"],
  exchange: ["exchanges"],
  tracker: ["trackers"],
  delivery: ["delivery"],
  outbound: ["outbound", "stakes", "uncollected"],
  chain: ["chain"],
  gas_station: ["gas_station", "chain"],
  job: ["job"],
  cron: ["cron"],
  merchant: ["merchant", "plans"],
};

/** Say whether a query shows something of a change. */
export function touches(key: readonly unknown[], { kind }: Change): boolean {
  return SHOWN_IN[kind]?.some((one) => one === key[0]) ?? false;
}
