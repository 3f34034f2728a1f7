/** The pages of a merchant by their address. Each comes in a file of its own, when it is gone to. */
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

import { merchantSession } from "./api";
import { meQuery, projectsQuery } from "./queries";

/** Where the gateway serves the dashboard. */
const BASE_PATH = "/dashboard";

/** What is the same in all projects of a merchant stays as it is when another one is chosen. */
function ofMerchant(): unknown {
  return undefined;
}

const SignInAgain = onDemand(async () => (await import("./auth/SignInAgain")).SignInAgain);

export function makeRouter(client: QueryClient) {
  const root = createRootRoute({ component: Outlet, notFoundComponent: NoSuchPage });

  const signIn = createRoute({
    getParentRoute: () => root,
    path: "/sign-in",
    validateSearch: readNext,
    component: lazyRouteComponent(() => import("./auth/SignIn"), "SignIn"),
  });
  const lostPassword = createRoute({
    getParentRoute: () => root,
    path: "/lost-password",
    component: lazyRouteComponent(() => import("./auth/LostPassword"), "LostPassword"),
  });
  const setPassword = createRoute({
    getParentRoute: () => root,
    path: "/set-password",
    component: lazyRouteComponent(
      withAllTexts(() => import("./auth/SetPassword")),
      "SetPassword",
    ),
  });
  const join = createRoute({
    getParentRoute: () => root,
    path: "/join",
    component: lazyRouteComponent(
      withAllTexts(() => import("./auth/Join")),
      "Join",
    ),
  });
  const signUp = createRoute({
    getParentRoute: () => root,
    path: "/sign-up",
    component: lazyRouteComponent(() => import("./auth/SignUp"), "SignUp"),
  });

  const signedIn = createRoute({
    getParentRoute: () => root,
    id: "signed-in",
    beforeLoad: async ({ location }) => {
      const token = await merchantSession.token();
      if (token === null) throw redirect({ to: "/sign-in", search: { next: location.href } });
      await client.query({ ...meQuery, staleTime: "static" });
    },
    component: () => <SignedIn session={merchantSession} basePath={BASE_PATH} SignInAgain={SignInAgain} />,
  });
  const home = createRoute({
    getParentRoute: () => signedIn,
    path: "/",
    beforeLoad: async () => {
      const projects = await client.query({ ...projectsQuery, staleTime: "static" });
      const first = projects.find((one) => one.isActive) ?? projects[0];
      if (first !== undefined) {
        throw redirect({ to: "/$projectId/overview", params: { projectId: first.projectId } });
      }
      throw redirect({ to: "/projects/new" });
    },
  });
  const newProject = createRoute({
    getParentRoute: () => signedIn,
    path: "/projects/new",
    component: lazyRouteComponent(
      withAllTexts(() => import("./projects/NewProject")),
      "NewProject",
    ),
  });

  const project = createRoute({
    getParentRoute: () => signedIn,
    path: "/$projectId",
    beforeLoad: async () => {
      await client.query({ ...projectsQuery, staleTime: "static" });
    },
    remountDeps: ofMerchant,
    component: lazyRouteComponent(() => import("./ProjectLayout"), "ProjectLayout"),
  });
  const page = pagesBelow(() => project);
  const pages = [
    page("/overview", () => import("./overview/OverviewPage"), "OverviewPage", { isFirst: true }),
    page("/payments", () => import("./payments/PaymentList"), "PaymentList"),
    page("/payments/new", () => import("./payments/NewPayment"), "NewPayment"),
    page("/payments/$paymentId", () => import("./payments/PaymentPage"), "PaymentPage"),
    page("/refunds", () => import("./refunds/RefundList"), "RefundList"),
    page("/refunds/$refundId", () => import("./refunds/RefundPage"), "RefundPage"),
    page("/resolutions", () => import("./resolutions/ResolutionsPage"), "ResolutionsPage"),
    page("/wallet", () => import("./wallet/WalletPage"), "WalletPage"),
    page("/payouts", () => import("./payouts/PayoutList"), "PayoutList"),
    page("/payouts/new", () => import("./payouts/NewPayout"), "NewPayout"),
    page("/payouts/$payoutId", () => import("./payouts/PayoutPage"), "PayoutPage"),
    page("/exchanges", () => import("./exchanges/ExchangeList"), "ExchangeList"),
    page("/exchanges/new", () => import("./exchanges/NewExchange"), "NewExchange"),
    page("/exchanges/$txnId", () => import("./exchanges/ExchangePage"), "ExchangePage"),
    page("/withdrawals", () => import("./withdrawals/WithdrawalList"), "WithdrawalList"),
    page("/withdrawals/new", () => import("./withdrawals/NewWithdrawal"), "NewWithdrawal"),
    page("/withdrawals/$withdrawalId", () => import("./withdrawals/WithdrawalPage"), "WithdrawalPage"),
    page("/coins", () => import("./coins/CoinsPage"), "CoinsPage"),
    page("/accounts", () => import("./accounts/AccountList"), "AccountList"),
    page("/accounts/$accountId", () => import("./accounts/AccountPage"), "AccountPage"),
    page("/trackers", () => import("./trackers/TrackerList"), "TrackerList"),
    page("/trackers/new", () => import("./trackers/NewTracker"), "NewTracker"),
    page("/trackers/$webhookId", () => import("./trackers/TrackerPage"), "TrackerPage"),
    page("/keys", () => import("./developers/KeysPage"), "KeysPage"),
    page("/webhooks", () => import("./developers/WebhooksPage"), "WebhooksPage"),
    page("/webhooks/endpoints/$endpointId", () => import("./developers/EndpointPage"), "EndpointPage"),
    page("/webhooks/$deliveryId", () => import("./developers/DeliveryPage"), "DeliveryPage"),
    page("/events", () => import("./developers/EventList"), "EventList"),
    page("/events/$eventId", () => import("./developers/EventPage"), "EventPage"),
    page("/sandbox", () => import("./sandbox/SandboxPage"), "SandboxPage"),
    page("/usage", () => import("./usage/UsagePage"), "UsagePage"),
    page("/team", () => import("./team/TeamPage"), "TeamPage", { remountDeps: ofMerchant }),
    page("/audit", () => import("./audit/AuditPage"), "AuditPage", { remountDeps: ofMerchant }),
    page("/security", () => import("./security/SecurityPage"), "SecurityPage", { remountDeps: ofMerchant }),
    page("/settings", () => import("./settings/SettingsPage"), "SettingsPage"),
  ];

  return createRouter({
    routeTree: root.addChildren([
      signIn,
      lostPassword,
      setPassword,
      join,
      signUp,
      signedIn.addChildren([home, newProject, project.addChildren(pages)]),
    ]),
    basepath: BASE_PATH,
    ...PAGES_OF_BOTH,
  });
}
