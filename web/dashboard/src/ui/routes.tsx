import {
  createRoute,
  lazyRouteComponent,
  useRouter,
  type AnyRoute,
  type ErrorComponentProps,
  type RouteComponent,
} from "@tanstack/react-router";

import { ErrorNote, Loading } from "./Feedback";

/** Why a page did not come. What it could not be without is asked for again, where showing it again would fail again. */
function PageError({ error }: ErrorComponentProps) {
  const router = useRouter();
  return <ErrorNote error={error} onRetry={() => void router.invalidate()} />;
}

/** What both apps' routers do while a page is on its way, and when it fails. */
export const PAGES_OF_BOTH = {
  defaultPreload: "intent",
  defaultPendingComponent: () => <Loading lines={6} />,
  defaultErrorComponent: PageError,
  scrollRestoration: true,
} as const;

/** Return what makes a page below another: it comes in a file of its own, when it is gone to. */
export function pagesBelow<Parent extends AnyRoute>(getParentRoute: () => Parent) {
  return <Path extends string>(path: Path, load: () => Promise<Record<string, unknown>>, name: string) =>
    createRoute({
      getParentRoute,
      path,
      component: lazyRouteComponent(load as () => Promise<Record<string, RouteComponent>>, name),
    });
}
