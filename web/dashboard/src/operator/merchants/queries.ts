import { queryOptions, useQueryClient } from "@tanstack/react-query";

import { api, unwrap, type Schemas } from "../api";

export type MerchantRow = Schemas["MerchantRow"];
export type MerchantWhole = Schemas["MerchantPage"];

export function merchantQuery(merchantId: string) {
  return queryOptions({
    queryKey: ["merchant", "one", merchantId],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/admin/merchants/{merchantId}", { params: { path: { merchantId } }, signal })),
  });
}

/** Return what has every page that shows merchants, or counts them, ask again. */
export function useMerchantsChanged(): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await Promise.all([
      client.invalidateQueries({ queryKey: ["merchant"] }),
      client.invalidateQueries({ queryKey: ["plans"] }),
    ]);
  };
}
