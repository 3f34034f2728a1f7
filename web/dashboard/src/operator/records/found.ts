import type { Schemas } from "../api";

/** Where records are shown whose ids begin like this. */
const PAGES: ReadonlyMap<string, string> = new Map([
  ["pay", "payments"],
  ["dep", "deposits"],
  ["po", "payouts"],
  ["ref", "refunds"],
  ["wd", "withdrawals"],
  ["xch", "exchanges"],
  ["acc", "accounts"],
]);

/** Return the page of the record with this id; undefined where it has none. */
export function pageOfId(id: string): string | undefined {
  const page = PAGES.get(id.split("_", 1)[0] ?? "");
  return page === undefined ? undefined : `/${page}/${id}`;
}

/** Where a thing that was found is shown: a project by what it was paid. */
export function pageOf({ kind, id }: Pick<Schemas["Found"], "kind" | "id">): {
  readonly to: string;
  readonly search: Readonly<Record<string, string>>;
} {
  if (kind === "projects") return { to: "/payments", search: { project: id } };
  return { to: `/${kind}/${id}`, search: {} };
}
