import { queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";

/**
 * What has happened of the first steps: whether there is a paid payment, and whether the shop's server has taken the event
 * of one. Payments stay; deliveries are deleted after a while, so what was seen done is kept in the browser.
 */
export function stepsQuery(projectId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "first-steps"],
    queryFn: async ({ signal }) => {
      const path = { projectId };
      const paid = { status: "paid", limit: 1 } as const;
      const taken = { event: "payment.paid", status: "delivered", limit: 1 } as const;
      const [{ payments }, { deliveries }] = await Promise.all([
        unwrap(api.GET("/api/dashboard/projects/{projectId}/payments", { params: { path, query: paid }, signal })),
        unwrap(api.GET("/api/dashboard/projects/{projectId}/deliveries", { params: { path, query: taken }, signal })),
      ]);
      return { isPaid: payments.length > 0, isTaken: deliveries.length > 0 };
    },
  });
}
