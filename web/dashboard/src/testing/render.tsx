/** A page of a merchant's or an operator's, with a gateway that answers what a test says. */
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider, type QueryClient } from "@tanstack/react-query";
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
  type RouteComponent,
} from "@tanstack/react-router";
import { render, waitFor } from "@testing-library/react";
import { vi } from "vitest";

import type { Session } from "../api/session";
import { merchantSession } from "../merchant/api";
import { meQuery, projectsQuery, type Member, type Project } from "../merchant/queries";
import { operatorSession, type Schemas as OperatorSchemas } from "../operator/api";
import { meQuery as operatorMeQuery } from "../operator/queries";
import { loadParts } from "../ui/onDemand";
import { makeQueryClient } from "../ui/Providers";
import { StepUp, stepUpWith } from "../ui/StepUp";
import { theme } from "../ui/theme";
import { PageLanguageProvider } from "../ui/language";

export const PROJECT = "prj_1";

export type Answer = (request: Request) => Response | Promise<Response>;

/** What the gateway answers, by method and path: `GET /api/…`. Anything else is 404. */
export type Answers = Readonly<Record<string, Answer | object>>;

export const json = (body: object, status = 200): Response =>
  new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });

export const refused = (status: number, code: string): Response => json({ success: false, error: "No.", code }, status);

export const nothing = { page: 1, limit: 25, total: 0, totalIsExact: true, nextCursor: null };

export const one = { ...nothing, total: 1 };

const PROJECT_VIEW: Project = {
  projectId: PROJECT,
  name: "Nordlicht",
  mode: "live",
  paymentWebhookUrl: null,
  webhookSigning: true,
  webhookSecretRotatedAt: null,
  previousSecretUntil: null,
  signatureCheck: null,
  underpaymentTolerancePercent: 0,
  graceHours: 72,
  extendedEvents: false,
  sandboxAutoMine: false,
  isActive: true,
  createdAt: "2026-01-01T12:00:00.000Z",
};

const ALL: Member["permissions"] = [
  "self",
  "read",
  "payments",
  "refunds",
  "payouts",
  "exchange",
  "accounts",
  "trackers",
  "webhooks",
  "withdrawals.read",
  "withdrawals",
  "approvals",
  "audit.read",
];

/** Return the project that pages are of, with what a test wants different. */
export function projectOf(changed: Partial<Project>): Project {
  return { ...PROJECT_VIEW, ...changed };
}

interface Shown {
  /** The page's path below the project, and where one is in it. */
  readonly path: string;
  readonly at?: string;
  readonly answers: Answers;
  readonly permissions?: Member["permissions"];
  readonly mode?: Project["mode"];
  /** What else of the project is different. */
  readonly project?: Partial<Project>;
  /** What is known of who is signed in. */
  readonly member?: Partial<Member["member"]>;
}

/** Show a page of a merchant's, and return each request that it sends. */
export async function show(
  Page: RouteComponent,
  { path, at = path, answers, permissions = ALL, mode = "live", project = {}, member = {} }: Shown,
): Promise<readonly Request[]> {
  const { sent } = await mount(Page, {
    session: merchantSession,
    path: `/$projectId/${path}`,
    at: `/${PROJECT}/${at}`,
    answer: answering(answers),
    known: (client) => {
      knowMember(client, permissions, { ...project, mode }, member);
    },
  });
  await heading();
  return sent;
}

/** Have it known who is signed in, and which project is theirs. */
export function knowMember(
  client: QueryClient,
  permissions: Member["permissions"],
  project: Partial<Project> = {},
  member: Partial<Member["member"]> = {},
): void {
  client.setQueryData(meQuery.queryKey, { success: true, member: member as Member["member"], permissions });
  client.setQueryData(projectsQuery.queryKey, [projectOf(project)]);
}

export type OperatorPermission = OperatorSchemas["OperatorSelf"]["permissions"][number];

interface ShownToOperator {
  readonly path: string;
  readonly at?: string;
  readonly answers: Answers;
  readonly permissions?: readonly OperatorPermission[];
}

/** Show a page of an operator's, and return each request that it sends. */
export async function showOperator(
  Page: RouteComponent,
  { path, at = path, answers, permissions = [] }: ShownToOperator,
): Promise<readonly Request[]> {
  const { sent } = await mount(Page, {
    session: operatorSession,
    path: `/${path}`,
    at: `/${at}`,
    answer: answering(answers),
    known: (client) => {
      knowOperator(client, permissions);
    },
  });
  await heading();
  return sent;
}

/** Have it known who is signed in. */
export function knowOperator(client: QueryClient, permissions: readonly OperatorPermission[]): void {
  const operator = { permissions: [...permissions] } as OperatorSchemas["OperatorSelf"];
  client.setQueryData(operatorMeQuery.queryKey, { success: true, operator } as never);
}

/** Return what facts say that a part of the page names, in their order. */
export function toldIn(part: HTMLElement): (readonly [title: string, text: string])[] {
  return [...part.querySelectorAll("dt")].map((one) => [one.textContent, one.nextElementSibling?.textContent ?? ""]);
}

/** Wait until the page is there. */
async function heading(): Promise<void> {
  await waitFor(() => {
    if (document.querySelector("h1") === null) throw new Error("The page has no heading.");
  });
}

function answering(answers: Answers): Answer {
  return (request) => {
    const found = answers[`${request.method} ${new URL(request.url).pathname}`];
    if (found === undefined) return refused(404, "NOT_FOUND");
    return typeof found === "function" ? (found as Answer)(request) : json(found);
  };
}

interface Mounted {
  readonly session: Session;
  readonly path: string;
  readonly at: string;
  readonly answer: Answer;
  /** Puts what is known before the page is gone to. */
  readonly known: (client: QueryClient) => void;
}

interface Mount {
  readonly client: QueryClient;
  /** Each request, as it is sent. */
  readonly sent: readonly Request[];
}

/** Go to a page, whether it has anything to show yet or not. */
export async function mount(Page: RouteComponent, { session, path, at, answer, known }: Mounted): Promise<Mount> {
  const sent: Request[] = [];
  vi.stubGlobal("fetch", async (input: Request | string, init?: RequestInit) => {
    const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
    sent.push(request.clone());
    return await answer(request);
  });
  session.begin({ accessToken: "token", expiresIn: 900 });
  stepUpWith(session);
  const client = makeQueryClient();
  const { queries = {} } = client.getDefaultOptions();
  client.setDefaultOptions({ queries: { ...queries, retryDelay: 1 } });
  known(client);
  const root = createRootRoute();
  const page = createRoute({ getParentRoute: () => root, path, component: Page });
  const elsewhere = createRoute({ getParentRoute: () => root, path: "$", component: () => <p>elsewhere</p> });
  const router = createRouter({
    routeTree: root.addChildren([page, elsewhere]),
    history: createMemoryHistory({ initialEntries: [at] }),
  });
  await router.load();
  // Whoever does something a moment after a page has come finds there what it opens.
  await loadParts();
  render(
    <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
      <QueryClientProvider client={client}>
        <PageLanguageProvider>
          <RouterProvider router={router} />
          <StepUp />
        </PageLanguageProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  return { client, sent };
}
