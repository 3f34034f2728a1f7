/** The pages of an operator by their address. Each comes in a file of its own, when it is gone to. */
import type { QueryClient } from "@tanstack/react-query";
import {
  Outlet,
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from "@tanstack/react-router";

import { onDemand } from "../ui/onDemand";
import { readNext } from "../ui/next";
import { NoSuchPage } from "../ui/NotFound";
import { PAGES_OF_BOTH, pagesBelow, withAllTexts } from "../ui/routes";
import { SignedIn } from "../ui/SignedIn";

import { operatorSession } from "./api";
import { firstPage } from "./nav";
import { meQuery } from "./queries";

/** Where the gateway serves the operators' pages. */
const BASE_PATH = "/operator";

const SignInAgain = onDemand(async () => (await import("./auth/SignInAgain")).SignInAgain);

export function makeRouter(client: QueryClient) {
  const root = createRootRoute({ component: Outlet, notFoundComponent: NoSuchPage });
  const signIn = createRoute({
    getParentRoute: () => root,
    path: "/sign-in",
    validateSearch: readNext,
    component: lazyRouteComponent(() => import("./auth/SignIn"), "SignIn"),
  });
  const setPassword = createRoute({
    getParentRoute: () => root,
    path: "/set-password",
    component: lazyRouteComponent(
      withAllTexts(() => import("./auth/SetPassword")),
      "SetPassword",
    ),
  });
  const signedIn = createRoute({
    getParentRoute: () => root,
    id: "signed-in",
    beforeLoad: async ({ location }) => {
      const token = await operatorSession.token();
      if (token === null) throw redirect({ to: "/sign-in", search: { next: location.href } });
      await client.query({ ...meQuery, staleTime: "static" });
    },
    component: () => <SignedIn session={operatorSession} basePath={BASE_PATH} SignInAgain={SignInAgain} />,
  });
  const layout = createRoute({
    getParentRoute: () => signedIn,
    id: "layout",
    component: lazyRouteComponent(() => import("./Layout"), "Layout"),
  });
  const home = createRoute({
    getParentRoute: () => layout,
    path: "/",
    beforeLoad: async () => {
      const { operator } = await client.query({ ...meQuery, staleTime: "static" });
      throw redirect({ to: firstPage(new Set<string>(operator.permissions)) });
    },
  });
  const page = pagesBelow(() => layout);
  const record = () => import("./records/pages");
  const pages = [
    page("/overview", () => import("./overview/OverviewPage"), "OverviewPage", { isFirst: true }),
    page("/search", () => import("./records/SearchPage"), "SearchPage"),
    page("/chains", () => import("./chains/ChainsPage"), "ChainsPage"),
    page("/chains/$chain", () => import("./chains/ChainPage"), "ChainPage"),
    page("/queue", () => import("./queue/QueuePage"), "QueuePage"),
    page("/queue/$intentId", () => import("./queue/IntentPage"), "IntentPage"),
    page("/gas", () => import("./gas/GasPage"), "GasPage"),
    page("/uncollected", () => import("./uncollected/UncollectedPage"), "UncollectedPage"),
    page("/uncollected/$address", () => import("./uncollected/AddressPage"), "AddressPage"),
    page("/collections", () => import("./collections/CollectionsPage"), "CollectionsPage"),
    page("/signer", () => import("./signer/SignerPage"), "SignerPage"),
    page("/resolutions", () => import("./resolutions/ResolutionsPage"), "ResolutionsPage"),
    page("/resolutions/$depositId", () => import("./resolutions/ResolutionPage"), "ResolutionPage"),
    page("/webhooks", () => import("./webhooks/WebhooksPage"), "WebhooksPage"),
    page("/webhooks/$deliveryId", () => import("./webhooks/DeliveryPage"), "DeliveryPage"),
    page("/reconcile", () => import("./reconcile/ReconcilePage"), "ReconcilePage"),
    page("/reconcile/$jobId", () => import("./reconcile/RunPage"), "RunPage"),
    page("/prices", () => import("./prices/PricesPage"), "PricesPage"),
    page("/tokens", () => import("./tokens/TokensPage"), "TokensPage"),
    page("/jobs", () => import("./jobs/JobsPage"), "JobsPage"),
    page("/jobs/$jobId", () => import("./jobs/JobPage"), "JobPage"),
    page("/plans", () => import("./plans/PlansPage"), "PlansPage"),
    page("/plugins", () => import("./plugins/PluginsPage"), "PluginsPage"),
    page("/settings", () => import("./settings/SettingsPage"), "SettingsPage"),
    page("/merchants", () => import("./merchants/MerchantsPage"), "MerchantsPage"),
    page("/merchants/$merchantId", () => import("./merchants/MerchantPage"), "MerchantPage"),
    page("/audit", () => import("./audit/AuditPage"), "AuditPage"),
    page("/security", () => import("./security/SecurityPage"), "SecurityPage"),
    page("/people", () => import("./people/PeoplePage"), "PeoplePage"),
    page("/payments", record, "Payments"),
    page("/payments/$id", record, "Payment"),
    page("/deposits", record, "Deposits"),
    page("/deposits/$id", record, "Deposit"),
    page("/payouts", record, "Payouts"),
    page("/payouts/$id", record, "Payout"),
    page("/refunds", record, "Refunds"),
    page("/refunds/$id", record, "Refund"),
    page("/withdrawals", record, "Withdrawals"),
    page("/withdrawals/$id", record, "Withdrawal"),
    page("/exchanges", record, "Exchanges"),
    page("/exchanges/$id", record, "Exchange"),
    page("/accounts", record, "Accounts"),
    page("/accounts/$id", record, "Account"),
    page("/trackers", record, "Trackers"),
    page("/trackers/$id", record, "Tracker"),
  ];
  return createRouter({
    routeTree: root.addChildren([signIn, setPassword, signedIn.addChildren([layout.addChildren([home, ...pages])])]),
    basepath: BASE_PATH,
    ...PAGES_OF_BOTH,
  });
}
