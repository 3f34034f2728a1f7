import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";
import type { operations } from "../../api/generated/dashboard";
import { listed, type Listed } from "../../ui/List";
import { ROWS, type Schemas } from "../queries";

export type Delivery = Schemas["DeliveryAnswer"];
const KEYS_MAX = 100;
type Filters = NonNullable<operations["listDeliveriesInProject"]["parameters"]["query"]>;

/** All that there may be. */
export function keysQuery(projectId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "keys"],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId }, query: { limit: KEYS_MAX } };
      return (await unwrap(api.GET("/api/merchant/projects/{projectId}/api-keys", { params, signal }))).keys;
    },
  });
}

export function deliveriesQuery(projectId: string, query: Filters) {
  return queryOptions({
    queryKey: ["project", projectId, "deliveries", query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Delivery>> => {
      const params = { path: { projectId }, query: { limit: ROWS, ...query } };
      const answer = await unwrap(api.GET("/api/dashboard/projects/{projectId}/deliveries", { params, signal }));
      return listed(answer.deliveries, answer);
    },
  });
}

export function deliveryQuery(projectId: string, deliveryId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "delivery", deliveryId],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId, deliveryId } };
      const path = "/api/dashboard/projects/{projectId}/deliveries/{deliveryId}";
      return (await unwrap(api.GET(path, { params, signal }))).delivery;
    },
  });
}
