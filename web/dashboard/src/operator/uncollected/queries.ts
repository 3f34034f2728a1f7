import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { listed, type Listed } from "../../ui/List";
import { api, unwrap, type Operations, type Schemas } from "../api";
import { ROWS } from "../queries";

export type Uncollected = Schemas["UncollectedView"];
export type Sum = Schemas["UncollectedSumView"];
export type AtAddress = Schemas["AtAddressView"];
export type Reason = Uncollected["reason"];
export type Filters = NonNullable<Operations["listUncollected"]["parameters"]["query"]>;

export const sumsQuery = queryOptions({
  queryKey: ["uncollected", "sums"],
  queryFn: async ({ signal }) => (await unwrap(api.GET("/api/admin/collections/uncollected/sums", { signal }))).sums,
});

export function uncollectedQuery(filters: Filters) {
  return queryOptions({
    queryKey: ["uncollected", "list", filters],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Uncollected>> => {
      const params = { query: { limit: ROWS, ...filters } };
      const answer = await unwrap(api.GET("/api/admin/collections/uncollected", { params, signal }));
      return listed(answer.uncollected, answer);
    },
  });
}

export function addressQuery(address: string) {
  return queryOptions({
    queryKey: ["uncollected", "address", address],
    queryFn: async ({ signal }) => {
      const params = { path: { address } };
      return (await unwrap(api.GET("/api/admin/collections/addresses/{address}", { params, signal }))).deposits;
    },
  });
}
