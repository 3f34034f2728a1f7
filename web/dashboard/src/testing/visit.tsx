/** A visit to a page by its route, with a gateway that answers as the API's own description says. */
import { waitFor } from "@testing-library/react";
import { onlineManager, QueryClient } from "@tanstack/react-query";
import type { AnyRoute, RouteComponent } from "@tanstack/react-router";
import { expect } from "vitest";

import { merchantSession } from "../merchant/api";
import type { Member, Project } from "../merchant/queries";
import { makeRouter as makeMerchantRouter } from "../merchant/router";
import { operatorSession } from "../operator/api";
import { makeRouter as makeOperatorRouter } from "../operator/router";

import { DESCRIBED, emptied } from "./described";
import { json, knowMember, knowOperator, mount, PROJECT, type Answer, type OperatorPermission } from "./render";

const APPS = {
  merchant: {
    session: merchantSession,
    makeRouter: makeMerchantRouter,
    know: (client: QueryClient, permissions: readonly string[], project?: Partial<Project>) => {
      knowMember(client, permissions as Member["permissions"], project);
    },
  },
  operator: {
    session: operatorSession,
    makeRouter: makeOperatorRouter,
    know: (client: QueryClient, permissions: readonly string[]) => {
      knowOperator(client, permissions as OperatorPermission[]);
    },
  },
} as const;

export type App = keyof typeof APPS;

/** What reads permit, and nothing else does. */
export const READS = /^(?:self|read|.*\.read)$/;
export const SENTENCE = "The moon is in the wrong place.";
/** What nobody should ever read. */
const RAW = /undefined|\bNaN\b|\[object|Invalid Date|\{\{/;

/** Return the routes of an app that show something, by their paths. */
export function routesOf(app: App): ReadonlyMap<string, AnyRoute> {
  const { routesById } = APPS[app].makeRouter(new QueryClient());
  const shown = Object.values<AnyRoute>(routesById as Record<string, AnyRoute>).filter(
    ({ options, children }) => options.component !== undefined && children === undefined,
  );
  return new Map(shown.map((route) => [route.fullPath as string, route]));
}

export interface Place {
  /** Which one the page is of, where it must be one that a list has too. */
  readonly id?: string;
  /** What the API's examples have different, by the end of the path. */
  readonly others?: Readonly<Record<string, object>>;
  /** Answers that are as they are also where there is nothing: what the page is of. */
  readonly kept?: string;
  /** What stands behind the path in the address. */
  readonly search?: string;
  readonly project?: Partial<Project>;
}

export class Visit {
  /** What the gateway answers from now on. */
  answer: Answer = never;

  constructor(
    private readonly app: App,
    private readonly route: AnyRoute,
    private readonly place: Place,
  ) {}

  /** Go to the page as somebody who may do so much. */
  async begin(answer: Answer, permitted = /./) {
    this.answer = answer;
    const { session, know } = APPS[this.app];
    const page: RouteComponent | undefined = this.route.options.component;
    if (page === undefined) throw new Error("The route shows nothing.");
    await page.preload?.();
    const path = this.route.fullPath as string;
    const at =
      path.replace("$projectId", PROJECT).replaceAll(/\$\w+/g, this.place.id ?? "one_1") + (this.place.search ?? "");
    const permissions = DESCRIBED[this.app].permissions.filter((one) => permitted.test(one));
    return await mount(page, {
      session,
      path,
      at,
      answer: (request) => this.answer(request),
      known: (client) => {
        know(client, permissions, this.place.project);
      },
    });
  }

  /** Answer the API's examples. */
  readonly full: Answer = (request) => json(this.example(request));

  /** Answer the same with nothing in it. */
  readonly nothing: Answer = (request) => {
    const example = this.example(request);
    return json(new URL(request.url).pathname === this.place.kept ? example : emptied(example));
  };

  private example({ url }: Request): object {
    const { pathname } = new URL(url);
    const found = DESCRIBED[this.app].example(pathname);
    if (found === undefined) throw new Error(`Nothing is described at ${pathname}.`);
    const [, other = {}] = Object.entries(this.place.others ?? {}).find(([end]) => pathname.endsWith(end)) ?? [];
    return merged(found, other);
  }
}

function merged(one: object, other: object): object {
  const changed = Object.entries(other).map(([name, value]: [string, unknown]) => {
    const below = (one as Readonly<Record<string, unknown>>)[name];
    return [name, isPlain(below) && isPlain(value) ? merged(below, value) : value] as const;
  });
  return { ...one, ...Object.fromEntries(changed) };
}

function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const never: Answer = () => new Promise(() => undefined);
export const lost: Answer = () => Promise.reject(new TypeError("Failed to fetch"));

/** Answer an error of the API's. */
export function refusal(status: number, code: string): Answer {
  return () => json({ success: false, error: SENTENCE, code }, status);
}

/** Tell the page that the browser has a connection, or has none. */
export function connect(is: boolean): void {
  onlineManager.setOnline(is);
}

/** Return all that can be read, also what stands in fields. */
export function seen(): string {
  const fields = [...document.querySelectorAll<HTMLInputElement>("input, textarea")];
  return [document.body.textContent, ...fields.map(({ value }) => value)].join("\n");
}

/** Wait until all these can be read. */
export async function reads(...wanted: readonly string[]): Promise<void> {
  await waitFor(() => {
    const found = seen();
    for (const one of wanted) expect(found).toContain(one);
  });
  expect(seen()).not.toMatch(RAW);
}

function textsOf(selector: string): readonly string[] {
  return [...document.querySelectorAll(selector)].map((one) => one.textContent.trim());
}

export const alerts = () => textsOf("[role=alert]");
export const headings = () => textsOf("h1, h2");
export const offered = () => textsOf("a, button");
export const skeletons = () => document.querySelectorAll("[role=status][aria-label=Loading]").length;
