import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";
import type { operations } from "../../api/generated/dashboard";
import { listed, type Listed } from "../../ui/List";
import { ROWS, type Schemas } from "../queries";

export type Exchange = Schemas["ExchangeView"];
type Filters = NonNullable<operations["listExchangesInProject"]["parameters"]["query"]>;

export function exchangesQuery(projectId: string, query: Filters) {
  return queryOptions({
    queryKey: ["project", projectId, "exchanges", query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Exchange>> => {
      const params = { path: { projectId }, query: { limit: ROWS, ...query } };
      const answer = await unwrap(
        api.GET("/api/dashboard/projects/{projectId}/swap-bridge/history", { params, signal }),
      );
      return listed(answer.exchanges, answer);
    },
  });
}

export function exchangeQuery(projectId: string, txnId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "exchange", txnId],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId, txnId } };
      const path = "/api/dashboard/projects/{projectId}/swap-bridge/history/{txnId}";
      return (await unwrap(api.GET(path, { params, signal }))).exchange;
    },
  });
}

/** What a coin can be exchanged for. */
export function pairsQuery(projectId: string, { chain, token }: { readonly chain: string; readonly token: string }) {
  return queryOptions({
    queryKey: ["project", projectId, "pairs", chain, token],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId }, query: { srcChain: chain, srcToken: token } };
      return (await unwrap(api.GET("/api/dashboard/projects/{projectId}/swap-bridge/pairs", { params, signal }))).pairs;
    },
  });
}

export function feesQuery(projectId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "platform-fees"],
    staleTime: 60_000,
    queryFn: ({ signal }) => {
      const params = { path: { projectId } };
      return unwrap(api.GET("/api/dashboard/projects/{projectId}/swap-bridge/platform-fees", { params, signal }));
    },
  });
}
