import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import type { operations } from "../../api/generated/dashboard";
import { listed, type Listed } from "../../ui/List";
import { api, unwrap } from "../api";
import { ROWS, type Schemas } from "../queries";

export type Refund = Schemas["RefundView"];
type Asked = NonNullable<operations["listRefundsInProject"]["parameters"]["query"]>;

export function refundListQuery(projectId: string, query: Asked) {
  return queryOptions({
    queryKey: ["project", projectId, "refunds", "list", query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Refund>> => {
      const params = { path: { projectId }, query: { limit: ROWS, ...query } };
      const path = "/api/dashboard/projects/{projectId}/payments/refunds/list";
      const answer = await unwrap(api.GET(path, { params, signal }));
      return listed(answer.refunds, answer);
    },
  });
}

export function refundQuery(projectId: string, refundId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "refunds", "one", refundId],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId, refundId } };
      const path = "/api/dashboard/projects/{projectId}/payments/refunds/{refundId}";
      return (await unwrap(api.GET(path, { params, signal }))).refund;
    },
  });
}
