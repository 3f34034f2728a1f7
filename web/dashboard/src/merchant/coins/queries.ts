import { queryOptions, useQuery } from "@tanstack/react-query";

import { api, unwrap } from "../api";
import { useChainOptions, useProject, useProjectId } from "../project";
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

interface Option {
  readonly value: string;
  readonly label: string;
}

/** Say whether projects of a mode may use a coin: sandboxes every one, live ones those of chains that are connected. */
export function isUsable(coin: Coin, mode: Project["mode"]): boolean {
  return mode === "sandbox" || coin.availability === "live";
}

/** Return the chains of the coins that the project may use, as forms offer them; none while they are not there. */
export function useUsableChains(): readonly Option[] {
  const mode = useProject()?.mode ?? "live";
  const { data: coins = [] } = useQuery(coinsQuery(useProjectId()));
  return useChainsOf(coins.filter((one) => isUsable(one, mode)));
}

/** Return the chains that there are coins on, as filters offer them. */
export function useCoinChains(): readonly Option[] {
  const { data: coins = [] } = useQuery(coinsQuery(useProjectId()));
  return useChainsOf(coins);
}

function useChainsOf(coins: readonly Coin[]): readonly Option[] {
  const named = new Map(useChainOptions().map((one) => [one.value, one.label]));
  const chains = [...new Set(coins.map((one) => one.chain))];
  return chains.map((value) => ({ value, label: named.get(value) ?? value }));
}

/** Return the tokens of the project's coins as filters offer them; none while they are not there. */
export function useCoinTokens(): readonly Option[] {
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
