import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";
import type { operations } from "../../api/generated/dashboard";
import { listed, type Listed } from "../../ui/List";
import { ROWS, type Schemas } from "../queries";

export const PAYOUT_STATUSES = [
  "requested",
  "processing",
  "broadcast",
  "completed",
  "failed",
  "cancelling",
  "cancelled",
] as const;
/** In these, nothing moves any more. */
export const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);

/** It did not happen, and its money went back to where it came from. */
export const GIVEN_BACK: ReadonlySet<string> = new Set(["failed", "cancelled"]);

export type Payout = Schemas["PayoutView"];

/** Say whether its amount is the least that the recipient was promised: it is paid out of another coin, and not yet. */
export function isMinimum({ swap, status }: Pick<Payout, "swap" | "status">): boolean {
  return swap !== null && status !== "completed";
}

type Filters = NonNullable<operations["listPayoutsInProject"]["parameters"]["query"]>;

export function payoutsQuery(projectId: string, query: Filters) {
  return queryOptions({
    queryKey: ["project", projectId, "payouts", query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Payout>> => {
      const params = { path: { projectId }, query: { limit: ROWS, ...query } };
      const answer = await unwrap(api.GET("/api/dashboard/projects/{projectId}/wallet/payouts", { params, signal }));
      return listed(answer.payouts, answer);
    },
  });
}

export function payoutQuery(projectId: string, payoutId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "payout", payoutId],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId, payoutId } };
      const path = "/api/dashboard/projects/{projectId}/wallet/payouts/{payoutId}";
      return (await unwrap(api.GET(path, { params, signal }))).payout;
    },
  });
}
