import type { Schemas } from "../api";
import { usePermissions } from "../queries";

/** Where things are shown whose ids begin like this, and the permission without which the page shows nothing. */
const PAGES: ReadonlyMap<string, readonly [page: string, permission: string]> = new Map([
  ["pay", ["payments", "records.read"]],
  ["dep", ["deposits", "records.read"]],
  ["po", ["payouts", "records.read"]],
  ["ref", ["refunds", "records.read"]],
  ["wd", ["withdrawals", "records.read"]],
  ["xch", ["exchanges", "records.read"]],
  ["acc", ["accounts", "records.read"]],
  ["mer", ["merchants", "merchants.read"]],
  ["int", ["queue", "outbound.read"]],
  ["dlv", ["webhooks", "webhooks.read"]],
  ["job", ["jobs", "jobs.read"]],
]);

/** Return what knows the page of the thing with an id; undefined where it has none, or none that is the reader's. */
export function usePageOfId(): (id: string) => string | undefined {
  const permissions = usePermissions();
  return (id) => {
    const [page, permission] = PAGES.get(id.split("_", 1)[0] ?? "") ?? [];
    return page !== undefined && permissions.has(permission ?? "") ? `/${page}/${id}` : undefined;
  };
}

/** Where a thing that was found is shown: a project by what it was paid. */
export function pageOf({ kind, id }: Pick<Schemas["Found"], "kind" | "id">): {
  readonly to: string;
  readonly search: Readonly<Record<string, string>>;
} {
  if (kind === "projects") return { to: "/payments", search: { project: id } };
  return { to: `/${kind}/${id}`, search: {} };
}
