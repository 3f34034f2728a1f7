import { queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";

export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/admin/settings", { signal })),
});
