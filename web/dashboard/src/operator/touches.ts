import type { Change } from "../api/live";

/** What begins the keys of the queries that show things of a kind of change. */
const SHOWN_IN: Readonly<Record<string, readonly string[]>> = {
  payment: ["payments", "overview"],
  deposit: ["deposits", "payments", "overview"],
  account_deposit: ["deposits", "overview"],
  resolution: ["resolution", "deposits", "overview"],
  payout: ["payouts", "overview"],
  refund: ["refunds", "payments", "overview"],
  withdrawal: ["withdrawals", "overview"],
  exchange: ["exchanges", "overview"],
  tracker: ["trackers"],
  delivery: ["delivery"],
  outbound: ["outbound", "stakes", "uncollected", "collections"],
  chain: ["chain", "overview"],
  token: ["tokens"],
  gas_station: ["gas_station", "chain", "overview"],
  job: ["job"],
  cron: ["cron"],
  merchant: ["merchant", "plans"],
  signer: ["signer", "overview"],
  price_source: ["prices", "overview"],
  price: ["prices", "overview"],
  uncollected: ["uncollected"],
  setting: ["settings"],
  plan: ["plans"],
  operator: ["operators"],
  member: ["merchant"],
  invitation: ["merchant"],
};

/** Say whether a query shows something of a change. */
export function touches(key: readonly unknown[], { kind }: Change): boolean {
  return SHOWN_IN[kind]?.some((one) => one === key[0]) ?? false;
}
