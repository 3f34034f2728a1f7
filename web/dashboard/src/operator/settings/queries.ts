import { queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";

import type { Settings } from "./fields";

export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/admin/settings", { signal })),
});

const NOT_DECIDED = new Set(["success", "version", "derivedMinimums"]);

/** Return what is decided of the settings: neither their version, nor what is derived from prices. */
export function decided(settings: Settings): object {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !NOT_DECIDED.has(name)));
}
