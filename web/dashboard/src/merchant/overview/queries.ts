import { queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";

/** What has happened of the first steps: a payment that is paid, and which endpoints there are. */
export function stepsQuery(projectId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "first-steps"],
    queryFn: async ({ signal }) => {
      const path = { projectId };
      const paid = { status: "paid", limit: 1 } as const;
      const [{ payments }, { endpoints }] = await Promise.all([
        unwrap(api.GET("/api/dashboard/projects/{projectId}/payments", { params: { path, query: paid }, signal })),
        unwrap(api.GET("/api/merchant/projects/{projectId}/webhook-endpoints", { params: { path }, signal })),
      ]);
      return {
        paidId: payments[0]?.paymentId ?? null,
        hasEndpoint: endpoints.length > 0,
        isVerified: endpoints.some((one) => one.signatureCheck?.result === "verified"),
      };
    },
  });
}
