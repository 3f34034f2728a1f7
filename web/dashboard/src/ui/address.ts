/** What stands in the page's address. Two apps share these pieces, so no one router's types are everybody's. */
import { useMatches, useParams, useSearch } from "@tanstack/react-router";

/** Return a part of the path; undefined where the page has none of that name. */
export function usePathPartIfAny(name: string): string | undefined {
  const params: unknown = useParams({ strict: false });
  return (params as Record<string, string | undefined>)[name];
}

/** Return a part of the path. Throws where the page has none of that name. */
export function usePathPart(name: string): string {
  const value = usePathPartIfAny(name);
  if (value === undefined) throw new Error(`The page's path has no ${name}.`);
  return value;
}

export function useSearchValues(): Record<string, unknown> {
  const search: unknown = useSearch({ strict: false });
  return search as Record<string, unknown>;
}

/** Return the path of the page's route, in which parts still have their names, such as `/$projectId/payments`. */
export function useRoutePath(): string {
  const matches: readonly { readonly fullPath: string }[] = useMatches();
  return matches.at(-1)?.fullPath ?? "";
}
