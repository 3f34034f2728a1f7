import { queryOptions } from "@tanstack/react-query";

import { api, unwrap, type Schemas } from "../api";

export type Plan = Schemas["PlanView"];

/** All that there may be. */
const PLANS_MAX = 100;

/** The plans, and what merchants have who were given none of them. */
export const plansQuery = queryOptions({
  queryKey: ["plans"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/admin/plans", { params: { query: { limit: PLANS_MAX } }, signal })),
});
