/** Where somebody wanted to go who had to sign in first. */
import { defaultParseSearch } from "@tanstack/react-router";

export interface Next {
  /** Where to go after signing in. */
  readonly next?: string;
}

/** Return where to go after signing in: a path of ours, never another site's. */
export function readNext(search: Record<string, unknown>): Next {
  const { next } = search;
  return typeof next === "string" && /^\/(?![/\\])/.test(next) ? { next } : {};
}

interface Destination {
  readonly to: string;
  readonly search: Record<string, unknown>;
}

/** Return where that is, as the router takes it and as it wrote it; the start where it says nothing. */
export function destination(next: string | undefined): Destination {
  const url = new URL(next ?? "/", "https://here.invalid");
  return { to: url.pathname, search: defaultParseSearch(url.search) };
}
