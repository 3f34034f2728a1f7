import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { gatewayNow } from "../../api/clock";
import { api, unwrap } from "../api";
import type { operations } from "../../api/generated/dashboard";
import { listed, type Listed } from "../../ui/List";
import { rawAt } from "../../ui/raw";
import { untilTried } from "../../ui/tried";
import { ROWS, type Schemas } from "../queries";

export type Delivery = Schemas["DeliveryAnswer"];
export type Endpoint = Schemas["EndpointView"];
export type TestResult = Schemas["TestResult"];

/** A delivery, and the bytes that it sends: those that the signature is of. */
export interface DeliveryAsSent {
  readonly delivery: Delivery;
  readonly body: string;
}

export type DeliveryFilters = NonNullable<operations["listDeliveriesInProject"]["parameters"]["query"]>;

const KEYS_MAX = 100;
/** A project has ten at most. */
const ENDPOINTS_MAX = 100;

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

/** All that there may be. */
export function endpointsQuery(projectId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "endpoints"],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId }, query: { limit: ENDPOINTS_MAX } };
      const path = "/api/merchant/projects/{projectId}/webhook-endpoints";
      return (await unwrap(api.GET(path, { params, signal }))).endpoints;
    },
  });
}

export function endpointQuery(projectId: string, endpointId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "endpoint", endpointId],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId, endpointId } };
      const path = "/api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}";
      return (await unwrap(api.GET(path, { params, signal }))).endpoint;
    },
  });
}

export function deliveriesQuery(projectId: string, query: DeliveryFilters) {
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

/** What one endpoint was sent, or will be. */
export function endpointDeliveriesQuery(projectId: string, endpointId: string, query: DeliveryFilters) {
  return queryOptions({
    queryKey: ["project", projectId, "deliveries", endpointId, query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Delivery>> => {
      const params = { path: { projectId, endpointId }, query: { limit: ROWS, ...query } };
      const path = "/api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/deliveries";
      const answer = await unwrap(api.GET(path, { params, signal }));
      return listed(answer.deliveries, answer);
    },
  });
}

export function deliveryQuery(projectId: string, deliveryId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "delivery", deliveryId],
    queryFn: async ({ signal }): Promise<DeliveryAsSent> => {
      const params = { path: { projectId, deliveryId } };
      const path = "/api/dashboard/projects/{projectId}/deliveries/{deliveryId}";
      const text = await unwrap(api.GET(path, { params, signal, parseAs: "text" }));
      const { delivery } = JSON.parse(text) as Schemas["DeliveryDetail"];
      return { delivery, body: rawAt(text, ["delivery", "payload"]) ?? "" };
    },
    // Changes tell of attempts that failed, and not of a first one that arrives.
    refetchInterval: ({ state }) => untilTried([state.data?.delivery.nextAttemptAt ?? null], gatewayNow()),
  });
}
