import { queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";

/** What has happened of the first steps: whether a payment was ever paid, and its event ever taken by the shop's server. */
export function stepsQuery(projectId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "first-steps"],
    queryFn: async ({ signal }) => {
      const path = { projectId };
      const paid = { event: "payment.paid", limit: 1 };
      const [events, deliveries] = await Promise.all([
        unwrap(api.GET("/api/dashboard/projects/{projectId}/events", { params: { path, query: paid }, signal })),
        unwrap(
          api.GET("/api/dashboard/projects/{projectId}/deliveries", {
            params: { path, query: { ...paid, status: "delivered" } },
            signal,
          }),
        ),
      ]);
      return { isPaid: events.events.length > 0, isTaken: deliveries.deliveries.length > 0 };
    },
  });
}
