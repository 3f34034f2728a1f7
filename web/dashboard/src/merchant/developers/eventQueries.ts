import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { gatewayNow } from "../../api/clock";
import { api, unwrap } from "../api";
import type { operations } from "../../api/generated/dashboard";
import { listed, type Listed } from "../../ui/List";
import { rawAt } from "../../ui/raw";
import { untilTried } from "../../ui/tried";
import { ROWS, type Schemas } from "../queries";

export type Event = Schemas["EventAnswer"];
type EventFilters = NonNullable<operations["listEventsInProject"]["parameters"]["query"]>;

/** An event, and the bytes that were or would have been sent. */
export interface EventAsSent {
  readonly event: Event;
  readonly body: string;
}

/** Return in how many milliseconds to look for what came of sending them; false where nothing is to be sent. */
export function untilEventTried(events: readonly Event[]): number | false {
  // Changes tell of attempts that failed, and not of a first one that arrives.
  const attempts = events.flatMap(({ deliveries }) => deliveries.map((one) => one.nextAttemptAt));
  return untilTried(attempts, gatewayNow());
}

export function eventListQuery(projectId: string, query: EventFilters) {
  return queryOptions({
    queryKey: ["project", projectId, "events", "list", query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Event>> => {
      const params = { path: { projectId }, query: { limit: ROWS, ...query } };
      const answer = await unwrap(api.GET("/api/dashboard/projects/{projectId}/events", { params, signal }));
      return listed(answer.events, answer);
    },
  });
}

export function eventQuery(projectId: string, eventId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "events", "one", eventId],
    queryFn: async ({ signal }): Promise<EventAsSent> => {
      const params = { path: { projectId, eventId } };
      const path = "/api/dashboard/projects/{projectId}/events/{eventId}";
      const text = await unwrap(api.GET(path, { params, signal, parseAs: "text" }));
      const { event } = JSON.parse(text) as Schemas["EventDetail"];
      return { event, body: rawAt(text, ["event", "payload"]) ?? "" };
    },
    refetchInterval: ({ state }) => untilEventTried(state.data === undefined ? [] : [state.data.event]),
  });
}
