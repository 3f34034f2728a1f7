import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";
import type { operations } from "../../api/generated/dashboard";
import { listed, type Listed } from "../../ui/List";
import { ROWS, type Schemas } from "../queries";

export type Entry = Schemas["UsageView"];
type Filters = NonNullable<operations["listUsageInProject"]["parameters"]["query"]>;

/** What was used, and what is left: the API answers both together. */
export interface Usage extends Listed<Entry> {
  readonly credit: Schemas["SystemCredit"];
}

export function planQuery(projectId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "plan"],
    queryFn: ({ signal }) => {
      const params = { path: { projectId } };
      return unwrap(api.GET("/api/dashboard/projects/{projectId}/plan", { params, signal }));
    },
  });
}

export function usageQuery(projectId: string, query: Filters) {
  return queryOptions({
    queryKey: ["project", projectId, "usage", query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Usage> => {
      const params = { path: { projectId }, query: { limit: ROWS, ...query } };
      const answer = await unwrap(api.GET("/api/dashboard/projects/{projectId}/usage", { params, signal }));
      return { ...listed(answer.usage, answer), credit: answer.systemCredit };
    },
  });
}

/** What operations cost in credits, and credits in money: the same for every merchant. */
export const costsQuery = queryOptions({
  queryKey: ["costs"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/public/cpt-calculator-config", { signal })),
});
