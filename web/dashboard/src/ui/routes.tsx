import {
  createRoute,
  lazyRouteComponent,
  useRouter,
  type AnyRoute,
  type ErrorComponentProps,
  type RouteComponent,
} from "@tanstack/react-router";

import { ApiError } from "../api/errors";
import { needAllTexts } from "../i18n";

import { ErrorNote, Loading } from "./Feedback";

/** Why a page did not come. What it could not be without is asked for again, where showing it again would fail again. */
function PageError({ error }: ErrorComponentProps) {
  const router = useRouter();
  return <ErrorNote error={error} onRetry={() => void router.invalidate()} />;
}

/** A page of something else is another one: it shows nothing of this one's, nor an open dialog, until its own has come. */
function ofWhatItShows({ params }: { readonly params: unknown }): unknown {
  return params;
}

/** What both apps' routers do while a page is on its way, and when it fails. */
export const PAGES_OF_BOTH = {
  defaultPreload: "intent",
  defaultPendingComponent: () => <Loading lines={6} />,
  defaultErrorComponent: PageError,
  defaultRemountDeps: ofWhatItShows,
  scrollRestoration: true,
} as const;

type Load = () => Promise<Record<string, unknown>>;

/** Return what loads a page with the texts of all pages: both are on their way at once. */
export function withAllTexts<Page>(load: () => Promise<Page>): () => Promise<Page> {
  return async () => {
    const [page] = await Promise.all([load(), needAllTexts()]);
    return page;
  };
}

/** How long it is waited for whether the gateway is there. */
const THERE_MS = 5_000;

/** Say whether the gateway answers at all. */
async function isThere(): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(THERE_MS);
    return (await fetch(location.pathname, { method: "HEAD", cache: "no-store", signal })).ok;
  } catch {
    return false;
  }
}

/**
 * Return what loads a page. Where its file does not come, the router loads everything anew, which an upgrade of the gateway
 * needs, as files have other names then. While the gateway is away, whoever sits there would be left with the browser's own
 * error page: then the page says so, and can be tried again.
 */
function unlessAway<Page>(load: () => Promise<Page>): () => Promise<Page> {
  return async () => {
    try {
      return await load();
    } catch (error) {
      if (await isThere()) throw error;
      throw new ApiError(0, "OFFLINE", "The gateway cannot be reached.");
    }
  };
}

interface Seen {
  /** Whether it says nothing but what is said first, and so waits for no other texts. */
  readonly isFirst?: boolean;
  /** What it is begun anew with, where the router's own rule is not it. */
  readonly remountDeps?: () => unknown;
}

/** Return what makes a page below another: it comes in a file of its own, when it is gone to. */
export function pagesBelow<Parent extends AnyRoute>(getParentRoute: () => Parent) {
  return <Path extends string>(path: Path, load: Load, name: string, { isFirst = false, ...rest }: Seen = {}) => {
    const loadAll = unlessAway(isFirst ? load : withAllTexts(load)) as () => Promise<Record<string, RouteComponent>>;
    return createRoute({ getParentRoute, path, component: lazyRouteComponent(loadAll, name), ...rest });
  };
}
