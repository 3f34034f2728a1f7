import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { listed, type Listed } from "../../ui/List";
import { api, unwrap } from "../api";
import { ROWS, type Schemas } from "../queries";

export type Resolution = Schemas["ResolutionView"];

export function resolutionsQuery(projectId: string, page: number) {
  return queryOptions({
    queryKey: ["project", projectId, "resolutions", page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Resolution>> => {
      const params = { path: { projectId }, query: { limit: ROWS, page } };
      const answer = await unwrap(api.GET("/api/dashboard/projects/{projectId}/resolutions", { params, signal }));
      return listed(answer.resolutions, answer);
    },
  });
}

/** What of one payment waits for a decision: a few at most. */
export function paymentResolutionsQuery(projectId: string, paymentId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "resolutions", "payment", paymentId],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId }, query: { paymentId } };
      return (await unwrap(api.GET("/api/dashboard/projects/{projectId}/resolutions", { params, signal }))).resolutions;
    },
  });
}
