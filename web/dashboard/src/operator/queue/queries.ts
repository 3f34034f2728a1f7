import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { listed, type Listed } from "../../ui/List";
import { api, unwrap, type Operations, type Schemas } from "../api";
import { ROWS } from "../queries";

export type Intent = Schemas["OutboundView"];
export type Filters = NonNullable<Operations["listOutbound"]["parameters"]["query"]>;

export function queueQuery(filters: Filters) {
  return queryOptions({
    queryKey: ["outbound", "list", filters],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Intent>> => {
      const params = { query: { limit: ROWS, ...filters } };
      const answer = await unwrap(api.GET("/api/admin/outbound", { params, signal }));
      return listed(answer.outbound, answer);
    },
  });
}

export function intentQuery(intentId: string) {
  return queryOptions({
    queryKey: ["outbound", "one", intentId],
    queryFn: async ({ signal }) => {
      const params = { path: { intentId } };
      return (await unwrap(api.GET("/api/admin/outbound/{intentId}", { params, signal }))).outbound;
    },
  });
}
