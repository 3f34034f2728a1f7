/** What the pages of a merchant ask the API for, each under the key by which it is forgotten when it changes. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "./api";
import type { components, operations } from "../api/generated/dashboard";
import { listed, type Listed } from "../ui/List";
import { rawAt } from "../ui/raw";

export type Schemas = components["schemas"];
export type Project = Schemas["ProjectView"];
export type Payment = Schemas["PaymentView"];
export type PaymentDetail = Schemas["PaymentDetail"] & Kept;
export type Member = Schemas["OwnMemberAnswer"];

/** What a shop keeps with something, as it was written, for whoever reads it rounds long numbers; null where it is nothing. */
export interface Kept {
  readonly metadataText: string | null;
}

/** Return it of what an answer has by this name. */
export function keptIn(answer: string, name: string): Kept {
  const text = rawAt(answer, [name, "metadata"]);
  return { metadataText: text === "null" ? null : text };
}

export const ROWS = 25;
const PROJECTS_MAX = 100;

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/dashboard/members/me", { signal })),
});

export const projectsQuery = queryOptions({
  queryKey: ["projects"],
  queryFn: async ({ signal }) => {
    const query = { limit: PROJECTS_MAX };
    return (await unwrap(api.GET("/api/merchant/projects", { params: { query }, signal }))).projects;
  },
});

/** The chains that projects of a mode can name: sandboxes have simulated ones besides. */
export function chainsQuery(mode: Project["mode"]) {
  return queryOptions({
    queryKey: ["chains", mode],
    staleTime: 60_000,
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET("/api/public/chains", { params: { query: { mode } }, signal }))).chains,
  });
}

type PaymentFilters = NonNullable<operations["listPaymentsInProject"]["parameters"]["query"]>;

export function paymentsQuery(projectId: string, query: PaymentFilters) {
  return queryOptions({
    queryKey: ["project", projectId, "payments", query],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Payment>> => {
      const path = { projectId };
      const params = { path, query: { limit: ROWS, ...query } };
      const answer = await unwrap(api.GET("/api/dashboard/projects/{projectId}/payments", { params, signal }));
      return listed(answer.payments, answer);
    },
  });
}

export function paymentQuery(projectId: string, paymentId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "payment", paymentId],
    queryFn: async ({ signal }): Promise<PaymentDetail> => {
      const params = { path: { projectId, paymentId } };
      const path = "/api/dashboard/projects/{projectId}/payments/{paymentId}";
      const text = await unwrap(api.GET(path, { params, signal, parseAs: "text" }));
      const { payment } = JSON.parse(text) as Schemas["PaymentAnswer"];
      return { ...payment, ...keptIn(text, "payment") };
    },
  });
}

export function paymentLinksQuery(projectId: string, paymentId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "payment", paymentId, "links"],
    staleTime: Infinity,
    queryFn: ({ signal }) => {
      const params = { path: { projectId, paymentId } };
      return unwrap(
        api.GET("/api/dashboard/projects/{projectId}/payments/{paymentId}/receipt-links", { params, signal }),
      );
    },
  });
}

/** The newest events of something, and whether there are no others. */
export function eventsQuery(projectId: string, resourceId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "events", resourceId],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId }, query: { resourceId, limit: 100 } };
      const answer = await unwrap(api.GET("/api/dashboard/projects/{projectId}/events", { params, signal }));
      return { events: answer.events, isAll: !listed(answer.events, answer).hasNext };
    },
  });
}

/** The newest refunds of a payment, and whether there are no others. */
export function refundsQuery(projectId: string, paymentId: string) {
  return queryOptions({
    queryKey: ["project", projectId, "refunds", paymentId],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId }, query: { paymentId, limit: 100 } };
      const path = "/api/dashboard/projects/{projectId}/payments/refunds/list";
      const answer = await unwrap(api.GET(path, { params, signal }));
      return { refunds: answer.refunds, isAll: !listed(answer.refunds, answer).hasNext };
    },
  });
}
