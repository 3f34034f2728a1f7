import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import type { operations } from "../../api/generated/dashboard";
import { listed, type Listed } from "../../ui/List";
import { api, unwrap } from "../api";
import { ROWS, type Schemas } from "../queries";

export type Resolution = Schemas["ResolutionView"];

type Filters = NonNullable<operations["listResolutionsInProject"]["parameters"]["query"]>;

export function resolutionsQuery(projectId: string, query: Filters) {
  return queryOptions({
    queryKey: ["project", projectId, "resolutions", query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Resolution>> => {
      const params = { path: { projectId }, query: { limit: ROWS, ...query } };
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

/** One deposit that was held, also when it has been decided about. */
export function resolutionQuery(projectId: string, depositId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "resolutions", "deposit", depositId],
    queryFn: async ({ signal }) => {
      const path = "/api/dashboard/projects/{projectId}/resolutions/{depositId}";
      return (await unwrap(api.GET(path, { params: { path: { projectId, depositId } }, signal }))).resolution;
    },
  });
}
