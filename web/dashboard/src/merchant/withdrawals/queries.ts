import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";
import type { operations } from "../../api/generated/dashboard";
import { listed, type Listed } from "../../ui/List";
import { ROWS, type Schemas } from "../queries";

export type Withdrawal = Schemas["WithdrawalView"];
type Filters = NonNullable<operations["listWithdrawals"]["parameters"]["query"]>;

/** The wallet is the merchant's: these are the withdrawals that were asked for in this project. */
export function withdrawalsQuery(projectId: string, filters: Filters) {
  return queryOptions({
    queryKey: ["project", projectId, "withdrawals", filters],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Withdrawal>> => {
      const query = { limit: ROWS, projectId, ...filters };
      const answer = await unwrap(api.GET("/api/dashboard/withdrawals", { params: { query }, signal }));
      return listed(answer.withdrawals, answer);
    },
  });
}

export function withdrawalQuery(projectId: string, withdrawalId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "withdrawal", withdrawalId],
    queryFn: async ({ signal }) => {
      const params = { path: { withdrawalId } };
      return (await unwrap(api.GET("/api/dashboard/withdrawals/{withdrawalId}", { params, signal }))).withdrawal;
    },
  });
}
