import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";
import { asApiError } from "../../api/errors";
import type { operations } from "../../api/generated/dashboard";
import { listed, type Listed } from "../../ui/List";
import { keptIn, ROWS, type Kept, type Schemas } from "../queries";

export type Account = Schemas["AccountView"];
export type AccountDetail = Account & Kept;
export type AccountDeposit = Schemas["AccountDeposit"];
type Filters = NonNullable<operations["listAccountsInProject"]["parameters"]["query"]>;
type DepositFilters = NonNullable<operations["listAccountDepositsInProject"]["parameters"]["query"]>;

const NONE = { page: 1, limit: ROWS, total: 0 };

export function accountsQuery(projectId: string, query: Filters) {
  return queryOptions({
    queryKey: ["project", projectId, "accounts", query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Account>> => {
      const params = { path: { projectId }, query: { limit: ROWS, ...query } };
      try {
        const answer = await unwrap(api.GET("/api/dashboard/projects/{projectId}/accounts", { params, signal }));
        return listed(answer.accounts, answer);
      } catch (refused) {
        // One end user's account is asked for by the whole name: without one, the API answers that it is not there.
        if (query.externalId !== undefined && asApiError(refused).code === "ACCOUNT_NOT_FOUND") return listed([], NONE);
        throw refused;
      }
    },
  });
}

export function accountQuery(projectId: string, accountId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "account", accountId],
    queryFn: async ({ signal }): Promise<AccountDetail> => {
      const params = { path: { projectId, accountId } };
      const path = "/api/dashboard/projects/{projectId}/accounts/{accountId}";
      const text = await unwrap(api.GET(path, { params, signal, parseAs: "text" }));
      const { account } = JSON.parse(text) as Schemas["AccountAnswer"];
      return { ...account, ...keptIn(text, "account") };
    },
  });
}

export function accountBalancesQuery(projectId: string, accountId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "account-balances", accountId],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId, accountId } };
      const path = "/api/dashboard/projects/{projectId}/accounts/{accountId}/balances";
      return (await unwrap(api.GET(path, { params, signal }))).balances;
    },
  });
}

export function accountDepositsQuery(projectId: string, accountId: string, query: DepositFilters) {
  return queryOptions({
    queryKey: ["project", projectId, "account-deposits", accountId, query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<AccountDeposit>> => {
      const params = { path: { projectId, accountId }, query: { limit: ROWS, ...query } };
      const path = "/api/dashboard/projects/{projectId}/accounts/{accountId}/deposits";
      const answer = await unwrap(api.GET(path, { params, signal }));
      return listed(answer.deposits, answer);
    },
  });
}
