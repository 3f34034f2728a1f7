import { useTranslation } from "react-i18next";

import type { NavGroup } from "../ui/Shell";

import { usePermitted } from "./project";
import type { Project } from "./queries";

/** The pages of a project, by what one comes for. */
export function useNav(project: Project | null): readonly NavGroup[] {
  const { t } = useTranslation();
  const mayReadAudit = usePermitted("audit.read");
  if (project === null) return [];
  const at = (page: string) => `/${project.projectId}/${page}`;
  return [
    {
      items: [
        { to: at("overview"), label: t("nav.overview") },
        { to: at("payments"), label: t("nav.payments") },
        { to: at("accounts"), label: t("nav.accounts") },
        { to: at("refunds"), label: t("nav.refunds") },
        { to: at("resolutions"), label: t("nav.resolutions") },
        { to: at("wallet"), label: t("nav.wallet") },
        { to: at("payouts"), label: t("nav.payouts") },
        { to: at("withdrawals"), label: t("nav.withdrawals") },
        { to: at("exchanges"), label: t("nav.exchanges") },
        { to: at("coins"), label: t("nav.coins") },
      ],
    },
    {
      title: t("nav.developers"),
      items: [
        { to: at("keys"), label: t("nav.keys") },
        { to: at("webhooks"), label: t("nav.webhooks") },
        { to: at("events"), label: t("events.title") },
        { to: at("trackers"), label: t("nav.trackers") },
        ...(project.mode === "sandbox" ? [{ to: at("sandbox"), label: t("nav.sandbox") }] : []),
      ],
    },
    {
      title: t("nav.account"),
      items: [
        { to: at("settings"), label: t("nav.settings") },
        { to: at("usage"), label: t("nav.usage") },
        { to: at("team"), label: t("nav.team") },
        { to: at("security"), label: t("nav.security") },
        ...(mayReadAudit ? [{ to: at("audit"), label: t("nav.audit") }] : []),
      ],
    },
  ];
}
