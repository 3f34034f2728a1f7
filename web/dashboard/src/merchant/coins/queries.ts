import { queryOptions, useQuery } from "@tanstack/react-query";

import { api, unwrap } from "../api";
import { useChainOptions, useProjectId } from "../project";
import { type Project, type Schemas } from "../queries";

export type Coin = Schemas["CoinView"];
export type Approved = Schemas["ApprovedAddress"];

const APPROVED_MAX = 100;

export const coinKey = (one: { readonly chain: string; readonly token: string }) => `${one.chain}/${one.token}`;

export function coinsQuery(projectId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "coins"],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId } };
      return (await unwrap(api.GET("/api/dashboard/projects/{projectId}/wallet/coins", { params, signal }))).coins;
    },
  });
}

/** Return the chains that the project has coins on: in the sandbox also those that the gateway has no node of. */
export function useCoinChains(): readonly { readonly value: string; readonly label: string }[] {
  const { data: coins = [] } = useQuery(coinsQuery(useProjectId()));
  const named = new Map(useChainOptions().map((one) => [one.value, one.label]));
  const chains = [...new Set(coins.map((one) => one.chain))];
  return chains.map((value) => ({ value, label: named.get(value) ?? value }));
}

/** Return the tokens of the project's coins as filters offer them; none while they are not there. */
export function useCoinTokens(): readonly { readonly value: string; readonly label: string }[] {
  const { data: coins = [] } = useQuery(coinsQuery(useProjectId()));
  return [...new Set(coins.map((one) => one.token))].sort().map((value) => ({ value, label: value }));
}

/** Approved addresses are the merchant's, for each mode: all that there may be, as there are a hundred at most. */
export function approvedQuery({ projectId, mode }: Pick<Project, "projectId" | "mode">) {
  return queryOptions({
    queryKey: ["project", projectId, "approved", mode],
    queryFn: async ({ signal }) => {
      const query = { mode, limit: APPROVED_MAX };
      return (await unwrap(api.GET("/api/dashboard/approved-addresses", { params: { query }, signal })))
        .approvedAddresses;
    },
  });
}
