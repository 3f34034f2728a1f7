/** Where what needs attention is seen to, in both apps. */

export interface Place {
  /** The page, as the navigation names it. */
  readonly page: string;
  /** The state that its list is to show. */
  readonly status?: "dropped" | "failed" | "processing" | "requested";
  /** What else its list is to be filtered by, under the names that its address has for it. */
  readonly filters?: Readonly<Record<string, string | number>>;
  /** The part of the page, by its id, where that is not at its head. */
  readonly part?: string;
}

/** What is counted together has lists of its own. */
const SENT = ["payouts", "refunds", "withdrawals"] as const;

/** Where somebody does something about each. */
export const PLACES_OF: Readonly<Partial<Record<string, readonly Place[]>>> = {
  RESOLUTIONS_OPEN: [{ page: "resolutions" }],
  // Operators have no wallet to look at, but those who owe.
  RECEIVABLE_OUTSTANDING: [{ page: "wallet" }, { page: "merchants" }],
  WEBHOOKS_FAILED: [{ page: "webhooks", status: "dropped" }],
  PAYOUTS_WAITING: SENT.flatMap((page) => [
    { page, status: "processing" } as const,
    { page, status: "requested" } as const,
  ]),
  PAYOUTS_FAILED: SENT.map((page) => ({ page, status: "failed" }) as const),
  KEYS_EXPIRING: [{ page: "keys" }],
  AUTO_CONVERT_REFUSED: [{ page: "coins" }],
  CREDITS_USED_UP: [{ page: "usage" }],
  CREDITS_LOW: [{ page: "usage" }],
  CHAINS_FAILING: [{ page: "chains" }],
  CHAIN_CHANGES_REFUSED: [{ page: "chains" }],
  ENDPOINTS_SET_ASIDE: [{ page: "chains" }],
  CHAINS_PAUSED: [{ page: "chains" }],
  GAS_LOW: [{ page: "gas" }],
  OUTBOUND_WAITING: [{ page: "queue", filters: { state: "waiting", olderThanMinutes: 60 } }],
  OUTBOUND_UNCONFIRMED: [{ page: "queue", filters: { state: "sending", olderThanMinutes: 60 } }],
  JOBS_FAILED: [{ page: "jobs", filters: { state: "failed" } }],
  RECURRING_JOBS_FAILED: [{ page: "jobs", part: "recurring" }],
  BOOKS_DIFFER: [{ page: "reconcile" }],
  AUDIT_LOG_CHANGED: [{ page: "audit" }],
  PRICE_SOURCES_SET_ASIDE: [{ page: "prices" }],
  PRICE_SOURCES_WRONG: [{ page: "prices" }],
  PRICES_MISSING: [{ page: "prices" }],
  APPROVALS_WAITING: [{ page: "signer" }],
  SIGNER_SILENT: [{ page: "signer" }],
};

/** Pages whose lists tell live and sandbox apart. */
export const HAVE_MODES: ReadonlySet<string> = new Set(["queue", "resolutions", ...SENT]);

/** Return the name by which the list of a page, in the operators' app, is filtered by a merchant. */
export function merchantFilter(page: string): "merchant" | "merchantId" {
  return SENT.some((one) => one === page) ? "merchant" : "merchantId";
}
