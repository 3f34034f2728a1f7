import type { NavGroup } from "../ui/Shell";

import { useWords } from "./api";
import { usePermissions } from "./queries";

/** The pages by what one comes for, each with the permission that it needs to show anything. */
const PAGES = [
  {
    title: "running",
    pages: [
      ["overview", "overview.read"],
      ["chains", "chains.read"],
      ["queue", "outbound.read"],
      ["gas", "money.read"],
      ["uncollected", "money.read"],
      ["collections", "money.read"],
      ["signer", "signer.read"],
      ["resolutions", "resolutions.read"],
      ["webhooks", "webhooks.read"],
    ],
  },
  {
    title: "money",
    pages: [
      ["merchants", "merchants.read"],
      ["payments", "records.read"],
      ["deposits", "records.read"],
      ["payouts", "records.read"],
      ["refunds", "records.read"],
      ["withdrawals", "records.read"],
      ["exchanges", "records.read"],
      ["accounts", "records.read"],
      ["trackers", "records.read"],
      ["search", "records.read"],
    ],
  },
  {
    title: "keeping",
    pages: [
      ["reconcile", "reconcile.read"],
      ["prices", "prices.read"],
      ["tokens", "chains.read"],
      ["jobs", "jobs.read"],
      ["plans", "plans.read"],
      ["plugins", "plugins.read"],
      ["settings", "settings.read"],
      ["people", "operators.read"],
      ["audit", "audit.read"],
    ],
  },
] as const;

/** Return the pages that the operator's role lets them read. */
export function useNav(): readonly NavGroup[] {
  const { t } = useWords();
  const permissions = usePermissions();
  return PAGES.map((group) => ({
    title: t(`nav.${group.title}`),
    items: group.pages
      .filter(([, permission]) => permissions.has(permission))
      .map(([page]) => ({ to: `/${page}`, label: t(`nav.${page}`) })),
  })).filter((group) => group.items.length > 0);
}

/** Return where an operator begins: the first page that is theirs to read. */
export function firstPage(permissions: ReadonlySet<string>): string {
  const first = PAGES.flatMap((group) => [...group.pages]).find(([, permission]) => permissions.has(permission));
  return `/${first?.[0] ?? "search"}`;
}
