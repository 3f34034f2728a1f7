import { useNavigate } from "@tanstack/react-router";

import { useSearchValues } from "./address";

const NEWEST = "-createdAt";
const ORDER = "sort";

/** What a list shows is in the page's address: a link to it shows the same, and going back goes back. */
export interface ListSearch<Name extends string> {
  readonly page: number;
  readonly filters: Partial<Record<Name, string>>;
  /** Change filters, and go to the first page. An empty text takes a filter away. */
  readonly filter: (changed: Partial<Record<Name, string>>) => void;
  readonly goTo: (page: number) => void;
  /** Whether anything is left out; an order leaves nothing out. */
  readonly isFiltered: boolean;
  /** Take every filter away, and keep the order. */
  readonly clear: () => void;
}

/** Read a list's part of the address. Where a page has several lists, each has a name of its own for its pages. */
export function useListSearch<Name extends string>(names: readonly Name[], pageName = "page"): ListSearch<Name> {
  const search = useSearchValues();
  const navigate = useNavigate();
  const page = readPage(search[pageName]);
  const own: ReadonlySet<string> = new Set([...names, pageName]);
  const others = Object.entries(search).filter(([name]) => !own.has(name));
  const filters: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = search[name];
    if (typeof value === "string" && value !== "") filters[name] = value;
    else if (typeof value === "number" || typeof value === "boolean") filters[name] = String(value);
  }
  const show = (wanted: Partial<Record<Name, string>>, at: number, replace: boolean) => {
    const kept = Object.entries(wanted).filter(([, value]) => value !== undefined && value !== "");
    const next = { ...Object.fromEntries([...others, ...kept]), ...(at > 1 ? { [pageName]: at } : {}) };
    void navigate({ to: ".", search: next, replace });
  };
  return {
    page,
    filters,
    filter: (changed) => {
      show({ ...filters, ...changed }, 1, true);
    },
    goTo: (at) => {
      show(filters, at, false);
    },
    isFiltered: Object.keys(filters).some((name) => name !== ORDER),
    clear: () => {
      const without = names.filter((name) => name !== ORDER).map((name) => [name, ""] as const);
      show({ ...filters, ...Object.fromEntries(without) }, 1, true);
    },
  };
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
