import type { Schemas } from "../api";

/** Where a thing that was found is shown: a project by what it was paid. */
export function pageOf({ kind, id }: Pick<Schemas["Found"], "kind" | "id">): {
  readonly to: string;
  readonly search: Readonly<Record<string, string>>;
} {
  if (kind === "projects") return { to: "/payments", search: { project: id } };
  return { to: `/${kind}/${id}`, search: {} };
}
