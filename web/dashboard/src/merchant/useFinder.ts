import { queryOptions } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";

import type { Finder } from "../ui/Palette";
import { useFound } from "../ui/useFound";

import { api, unwrap } from "./api";
import type { Project, Schemas } from "./queries";

type Found = Schemas["OwnFound"];

function foundQuery(projectId: string, q: string) {
  return queryOptions({
    queryKey: ["project", projectId, "search", q],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId }, query: { q } };
      return (await unwrap(api.GET("/api/dashboard/projects/{projectId}/search", { params, signal }))).found;
    },
  });
}

/** Finds a project's records by whatever is pasted: an id, an address, a transaction, an order, an e-mail address. */
export function useFinder(project: Project | null): Finder {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const projectId = project?.projectId ?? "";
  const { found, ...state } = useFound((q) => foundQuery(projectId, q), project !== null);
  return {
    ...state,
    found: found.map((one) => ({
      id: `found-${one.kind}-${one.id}`,
      label: labelOf(one, t),
      run: () => void navigate({ to: `/${projectId}/${pageOf(one)}` }),
    })),
  };
}

/** A deposit is shown where it came to. */
function pageOf({ kind, id, paymentId, accountId }: Found): string {
  if (kind !== "deposits") return `${kind}/${id}`;
  return paymentId === null ? `accounts/${accountId ?? ""}` : `payments/${paymentId}`;
}

function labelOf({ kind, id, status }: Found, t: TFunction): string {
  const name = {
    payments: t("payment.title"),
    deposits: t("payment.deposit"),
    payouts: t("payout.title"),
    refunds: t("refund.one"),
    withdrawals: t("withdrawal.one"),
    exchanges: t("exchange.one"),
    accounts: t("account.one"),
    trackers: t("tracker.one"),
  }[kind];
  return [name, id, status === null ? null : t(`status.${status}` as "status.paid")].filter(Boolean).join(" · ");
}
