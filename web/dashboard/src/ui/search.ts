import { useRouter } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";

import { useSearchValues } from "./address";

const NEWEST = "-createdAt";
const ORDER = "sort";

/** What a list shows is in the page's address: a link to it shows the same, and going back goes back. */
export interface ListSearch<Name extends string> {
  readonly page: number;
  readonly filters: Partial<Record<Name, string>>;
  /** Change filters, and go to the first page. An empty text takes a filter away. */
  readonly filter: (changed: Partial<Record<Name, string>>) => void;
  /** The same of one filter each. */
  readonly set: Readonly<Record<Name, (value: string) => void>>;
  readonly goTo: (page: number) => void;
  /** Whether anything is left out; an order leaves nothing out. */
  readonly isFiltered: boolean;
  /** Take every filter away, and keep the order. */
  readonly clear: () => void;
}

/** Asks for what will be shown, before it is gone to. */
type Ahead<Name extends string> = (page: number, filters: Partial<Record<Name, string>>) => void;

/**
 * Read a list's part of the address. Where a page has several lists, each has a name of its own for its pages. `ahead` is
 * told what is gone to, so that the gateway looks for it while the page still draws what was asked for.
 * What it returns to act by stays the same from one rendering to the next, where `names` and `ahead` do.
 */
export function useListSearch<Name extends string>(
  names: readonly Name[],
  pageName = "page",
  ahead?: Ahead<Name>,
): ListSearch<Name> {
  const search = useSearchValues();
  const router = useRouter();
  const filters = useMemo(() => filtersIn(search, names), [search, names]);
  const show = useCallback(
    (changed: Partial<Record<Name, string>>, at: number, replace: boolean) => {
      // What was asked for last: it may not be shown yet.
      const now = router.latestLocation.search as Readonly<Record<string, unknown>>;
      const own: ReadonlySet<string> = new Set([...names, pageName]);
      const others = Object.entries(now).filter(([name]) => !own.has(name));
      const wanted: Partial<Record<Name, string>> = { ...filtersIn(now, names), ...changed };
      const kept = Object.entries(wanted).filter(([, value]) => value !== undefined && value !== "");
      ahead?.(at, Object.fromEntries(kept) as Partial<Record<Name, string>>);
      const next = { ...Object.fromEntries([...others, ...kept]), ...(at > 1 ? { [pageName]: at } : {}) };
      void router.navigate({ to: ".", search: next, replace });
    },
    [router, names, pageName, ahead],
  );
  const acts = useMemo(() => {
    const filter = (changed: Partial<Record<Name, string>>) => {
      show(changed, 1, true);
    };
    const setters = names.map((name) => [
      name,
      (value: string) => {
        filter({ [name]: value } as Partial<Record<Name, string>>);
      },
    ]);
    return {
      filter,
      set: Object.fromEntries(setters) as Record<Name, (value: string) => void>,
      goTo: (at: number) => {
        show({}, at, false);
      },
      clear: () => {
        const without = names.filter((name) => name !== ORDER).map((name) => [name, ""] as const);
        filter(Object.fromEntries(without) as Partial<Record<Name, string>>);
      },
    };
  }, [show, names]);
  return {
    page: readPage(search[pageName]),
    filters,
    isFiltered: Object.keys(filters).some((name) => name !== ORDER),
    ...acts,
  };
}

function filtersIn<Name extends string>(
  search: Readonly<Record<string, unknown>>,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const filters: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = search[name];
    if (typeof value === "string" && value !== "") filters[name] = value;
    else if (typeof value === "number" || typeof value === "boolean") filters[name] = String(value);
  }
  return filters;
}

interface Sorted {
  readonly filters: { readonly sort?: string };
  readonly filter: (changed: { readonly sort: string }) => void;
}

/** What a list takes that begins with the newest. */
export function newestFirst(search: Sorted) {
  return beginsWith(NEWEST, search);
}

/** What a list takes whose own order is this one: another one stands in the address. */
export function beginsWith(own: string, search: Sorted) {
  return {
    sort: search.filters.sort ?? own,
    onSort: (sort: string) => {
      search.filter({ sort: sort === own ? "" : sort });
    },
  };
}

function readPage(value: unknown): number {
  const page = Number(value);
  return Number.isSafeInteger(page) && page >= 1 ? page : 1;
}
