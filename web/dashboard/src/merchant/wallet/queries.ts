import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";

import { api, unwrap } from "../api";
import type { operations } from "../../api/generated/dashboard";
import { listed, type Listed } from "../../ui/List";
import { coinKey, coinsQuery } from "../coins/queries";
import { useProjectId } from "../project";
import { ROWS, type Schemas } from "../queries";

export function walletQuery(projectId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "wallet"],
    queryFn: ({ signal }) => {
      const params = { path: { projectId } };
      return unwrap(api.GET("/api/dashboard/projects/{projectId}/wallet", { params, signal }));
    },
  });
}

type Balance = Schemas["BalanceView"];

/** Return the balances that forms can name: of several that go by one symbol, that of the contract it stands for. */
export function useNamed(balances: readonly Balance[]): readonly Balance[] {
  const { data: coins = [] } = useQuery(coinsQuery(useProjectId()));
  const contracts = new Map(coins.map((one) => [coinKey(one), one.contractAddress ?? null]));
  const meant = balances.filter((one) => {
    const contract = contracts.get(coinKey(one));
    return contract === undefined || contract === (one.contractAddress ?? null);
  });
  // Also while nobody knows which it is, one key is offered once.
  return [...new Map(meant.map((one) => [coinKey(one), one])).values()];
}

/** Return the tokens of the wallet as filters offer them; none while they are not there. */
export function useWalletTokens(projectId: string): readonly { readonly value: string; readonly label: string }[] {
  const { data } = useQuery(walletQuery(projectId));
  return [...new Set(data?.balances.map((one) => one.token))].sort().map((value) => ({ value, label: value }));
}

/** What there is and what it is worth; in the currency that the gateway begins with, where none is given. */
export function worthQuery(projectId: string, currency: string | undefined) {
  return queryOptions({
    queryKey: ["project", projectId, "wallet", "worth", currency],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => {
      const params = { path: { projectId }, query: currency === undefined ? {} : { currency } };
      return unwrap(api.GET("/api/dashboard/projects/{projectId}/wallet/worth", { params, signal }));
    },
  });
}

export function addressesQuery(projectId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "wallet", "addresses"],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId } };
      return (await unwrap(api.GET("/api/dashboard/projects/{projectId}/wallet/addresses", { params, signal })))
        .addresses;
    },
  });
}

const COLLECTIONS_MAX = 100;

/** The newest collections, and whether there are no others. */
export function collectionsQuery(projectId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "collections"],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId }, query: { limit: COLLECTIONS_MAX } };
      const path = "/api/dashboard/projects/{projectId}/wallet/collections";
      const answer = await unwrap(api.GET(path, { params, signal }));
      return { collections: answer.collections, isAll: !listed(answer.collections, answer).hasNext };
    },
  });
}

/** What stands in the address of the wallet: the currency that it is worth so much in, and the statement's filters. */
export const WALLET_FILTERS = ["currency", "chain", "token", "type", "from", "until", "sort"] as const;

type StatementFilters = NonNullable<operations["listTransactionsInProject"]["parameters"]["query"]>;

export function statementQuery(projectId: string, query: StatementFilters) {
  return queryOptions({
    queryKey: ["project", projectId, "wallet", "transactions", query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Schemas["TransactionView"]>> => {
      const params = { path: { projectId }, query: { limit: ROWS, ...query } };
      const path = "/api/dashboard/projects/{projectId}/wallet/transactions";
      const answer = await unwrap(api.GET(path, { params, signal }));
      return listed(answer.transactions, answer);
    },
  });
}
