/** What several of an operator's pages ask the API for. */
import { queryOptions, useQuery, useSuspenseQuery } from "@tanstack/react-query";

import { api, unwrap, useWords, type Schemas } from "./api";

export const ROWS = 25;

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/admin/auth/me", { signal })),
});

type Permission = Schemas["OperatorSelf"]["permissions"][number];

/** Say whether the operator's role permits something. The API refuses the rest; pages do not offer it. */
export function usePermitted(permission: Permission): boolean {
  return useSuspenseQuery(meQuery).data.operator.permissions.includes(permission);
}

/** Return what says which permissions the operator's role has. */
export function usePermissions(): ReadonlySet<string> {
  return new Set<string>(useSuspenseQuery(meQuery).data.operator.permissions);
}

export const operatorsQuery = queryOptions({
  queryKey: ["operators"],
  queryFn: async ({ signal }) =>
    (await unwrap(api.GET("/api/admin/operators", { params: { query: { limit: 100 } }, signal }))).operators,
});

/** Return what calls whoever asked for something by name: an operator, the admin key or the gateway itself. */
export function useAskerName(): (asker: string) => string {
  const { t } = useWords();
  const { data = [] } = useQuery({ ...operatorsQuery, staleTime: 60_000, enabled: usePermitted("operators.read") });
  const names = new Map([
    ["operator", t("askedBy.adminKey")],
    ["admin key", t("askedBy.adminKey")],
    ["gateway", t("askedBy.platform")],
    ...data.map(({ operatorId, name }) => [operatorId, name] as const),
  ]);
  return (asker) => names.get(asker) ?? asker;
}

export const chainsQuery = queryOptions({
  queryKey: ["chain"],
  queryFn: async ({ signal }) => (await unwrap(api.GET("/api/admin/chains", { signal }))).chains,
});

type Availability = Schemas["AdminChainView"]["availability"];

/** Return the chains as a filter offers them, or those alone that are so available; none while they are not there. */
export function useChainOptions(only?: Availability): readonly { readonly value: string; readonly label: string }[] {
  const { data = [] } = useQuery({ ...chainsQuery, staleTime: 60_000, enabled: usePermitted("chains.read") });
  const offered = only === undefined ? data : data.filter((one) => one.availability === only);
  return offered.map((one) => ({ value: one.chain, label: one.name }));
}

/** Return what names the coin that a chain takes its fees in; undefined where its gas station is not told of. */
export function useFeeCoin(): (chain: string) => string | undefined {
  const { data = [] } = useQuery({ ...chainsQuery, staleTime: 60_000, enabled: usePermitted("chains.read") });
  return (chain) => data.find((one) => one.chain === chain)?.gasStation?.symbol;
}

async function readEveryToken(signal: AbortSignal): Promise<readonly Schemas["AdminToken"][]> {
  const found: Schemas["AdminToken"][] = [];
  for (let page = 1; ; page += 1) {
    const params = { query: { limit: 100, page } };
    const { tokens, total } = await unwrap(api.GET("/api/admin/tokens", { params, signal }));
    found.push(...tokens);
    if (tokens.length === 0 || found.length >= total) return found;
  }
}

/** Return every token by its name, as settings write it: `ethereum/USDT`. None while they are not there. */
export function useCoinNames(): readonly string[] {
  const { data = [] } = useQuery({
    queryKey: ["tokens", "every"],
    queryFn: ({ signal }) => readEveryToken(signal),
    enabled: usePermitted("chains.read"),
  });
  return [...new Set(data.flatMap(({ chain, symbol }) => (symbol === null ? [] : [`${chain}/${symbol}`])))];
}
