/** Trackers over the project's own part of the API, and what is in one with the token that manages it. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import createClient from "openapi-fetch";

import { api, unwrap } from "../api";
import type { operations, paths } from "../../api/generated/merchant";
import { keyed } from "../../api/client";
import { ApiError } from "../../api/errors";
import { inTime } from "../../api/inTime";
import { listed, type Listed } from "../../ui/List";
import { keptIn, ROWS, type Kept, type Schemas } from "../queries";

export type Tracker = Schemas["TrackerView"];
export type TrackerDetail = Tracker & Kept;
export type Movement = Ok<"listTrackerTransactions">["transactions"][number];
export type Watched = Ok<"listTrackerAddresses">["addresses"][number];

type Ok<Name extends "listTrackerTransactions" | "listTrackerAddresses"> =
  operations[Name]["responses"][200]["content"]["application/json"];
type MovementFilters = NonNullable<operations["listTrackerTransactions"]["parameters"]["query"]>;
type AddressFilters = NonNullable<operations["listTrackerAddresses"]["parameters"]["query"]>;

const TOKENS_AT_ONCE = 100;

export function trackersQuery(projectId: string, page: number) {
  return queryOptions({
    queryKey: ["project", projectId, "trackers", page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Tracker>> => {
      const params = { path: { projectId }, query: { limit: ROWS, page } };
      const answer = await unwrap(api.GET("/api/dashboard/projects/{projectId}/trackers", { params, signal }));
      return listed(answer.webhooks, answer);
    },
  });
}

export function trackerQuery(projectId: string, webhookId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "tracker", webhookId],
    queryFn: async ({ signal }): Promise<TrackerDetail> => {
      const params = { path: { projectId, webhookId } };
      const path = "/api/dashboard/projects/{projectId}/trackers/{webhookId}";
      const text = await unwrap(api.GET(path, { params, signal, parseAs: "text" }));
      const { webhook } = JSON.parse(text) as Schemas["TrackerAnswer"];
      return { ...webhook, ...keptIn(text, "webhook") };
    },
  });
}

/** The token that manages a tracker: in memory alone, and asked for only by whoever may have it. */
export function tokenQuery(projectId: string, webhookId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "tracker-token", webhookId],
    queryFn: async ({ signal }): Promise<string> => {
      for (let page = 1; ; page += 1) {
        const query = { page, limit: TOKENS_AT_ONCE };
        const { webhooks, total } = await unwrap(api.GET("/api/merchant/webhooks", { params: { query }, signal }));
        const found = webhooks.find((one) => one.webhookId === webhookId);
        if (found !== undefined) return found.authToken;
        if (page * TOKENS_AT_ONCE < total) continue;
        // It was deleted meanwhile: what the API says of one that is not there.
        throw new ApiError(404, "TRACKER_NOT_FOUND", "There is no such tracker webhook.");
      }
    },
  });
}

const withToken = createClient<paths, "application/json">({ fetch: keyed(inTime()) });

const headersOf = (token: string) => ({ "X-Auth-Token": token });

export function movementsQuery(projectId: string, webhookId: string, token: string, filters: MovementFilters) {
  return queryOptions({
    queryKey: ["project", projectId, "tracker-part", webhookId, "movements", filters],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Movement>> => {
      const params = { query: { limit: ROWS, ...filters } };
      const asked = { params, headers: headersOf(token), signal };
      const answer = await unwrap(withToken.GET("/api/webhook/transaction/list", asked));
      return listed(answer.transactions, answer);
    },
  });
}

export function watchedQuery(projectId: string, webhookId: string, token: string, filters: AddressFilters) {
  return queryOptions({
    queryKey: ["project", projectId, "tracker-part", webhookId, "addresses", filters],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Watched>> => {
      const params = { query: { limit: ROWS, ...filters } };
      const asked = { params, headers: headersOf(token), signal };
      const answer = await unwrap(withToken.GET("/api/webhook/address/list", asked));
      return listed(answer.addresses, answer);
    },
  });
}

export type Fresh = Pick<Schemas["IssuedTracker"], "authToken" | "secretKey">;

/** Change where a tracker delivers, and what it is called. */
export function change(token: string, body: { readonly name?: string; readonly url?: string }) {
  return unwrap(withToken.POST("/api/webhook/update", { body, headers: headersOf(token) }));
}

/** Replace a tracker's token and secret: the old ones are invalid at once, the new ones are told this once. */
export async function replaceCredentials(token: string): Promise<Fresh> {
  const { webhook } = await unwrap(withToken.POST("/api/webhook/regenerate-secret", { headers: headersOf(token) }));
  return { authToken: webhook.authToken, secretKey: webhook.secretKey };
}

/** Have a made-up transaction sent to the tracker's URL now. */
export function sendTest(token: string) {
  return unwrap(withToken.POST("/api/webhook/test", { headers: headersOf(token) }));
}

export interface Wanted {
  readonly address: string;
  readonly label?: string;
}

/** Put addresses on the list; the answer says of each what became of it. */
export function watch(token: string, addresses: readonly Wanted[]) {
  const body = { addresses: [...addresses] };
  return unwrap(withToken.POST("/api/webhook/address/add-bulk", { body, headers: headersOf(token) }));
}

export function unwatch(token: string, address: string) {
  return unwrap(withToken.POST("/api/webhook/address/remove", { body: { address }, headers: headersOf(token) }));
}

/** Call a watched address something else, or nothing. */
export function rename(token: string, address: string, label: string) {
  const body = { address, label: label === "" ? null : label };
  return unwrap(withToken.POST("/api/webhook/address/update", { body, headers: headersOf(token) }));
}
