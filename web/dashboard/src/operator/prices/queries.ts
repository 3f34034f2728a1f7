import { queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";

/** What sources say of each coin's price. */
export const pricesQuery = queryOptions({
  queryKey: ["prices"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/admin/prices", { signal })),
});
