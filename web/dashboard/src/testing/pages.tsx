/**
 * The states of every page: full, empty, loading, refused, forbidden, offline. A page's entry says what it shows in
 * each; what all pages keep to is here.
 */
import { cleanup, fireEvent, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";

import { declareForm, type Form } from "./forms";
import {
  alerts,
  connect,
  headings,
  lost,
  never,
  offered,
  reads,
  READS,
  refusal,
  routesOf,
  seen,
  SENTENCE,
  skeletons,
  Visit,
  type App,
  type Place,
} from "./visit";

export interface Page extends Place {
  /** Its heading before anything is known. */
  readonly title: string;
  /** What is only there once the API has answered. */
  readonly full: readonly [string, ...string[]];
  /** What it says where there is nothing, and what it offers then. A page that is never empty says what is missing. */
  readonly empty: { readonly says: string; readonly offers?: string } | "missing";
  /** What is offered to whoever may do it, and to nobody who may only read. */
  readonly acts?: readonly string[];
  /** What whoever may only read is told in the place of all that. */
  readonly reader?: string;
}

/** Declare the tests of every page of an app. A route without an entry fails, and so does an entry without a route. */
export function declareStates(
  app: App,
  pages: Readonly<Record<string, Page>>,
  forms: Readonly<Record<string, Form>>,
): void {
  const routes = routesOf(app);
  const said = [...Object.keys(pages), ...Object.keys(forms)];

  it("every page says here what it shows in each state", () => {
    expect(said.sort()).toEqual([...routes.keys()].sort());
  });

  describe.each(said)("%s", (path) => {
    const route = routes.get(path);
    if (route === undefined) return;
    const [page, form] = [pages[path], forms[path]];
    if (page !== undefined) declarePage(new Visit(app, route, page), page);
    if (form !== undefined) declareForm(new Visit(app, route, form), form);
  });
}

function declarePage(visit: Visit, { title, full, empty, acts = [], reader }: Page): void {
  const isFull = () => full.every((one) => seen().includes(one));

  afterEach(() => {
    connect(true);
  });

  it("shows what there is, and keeps it while there is no connection", async () => {
    const complained = vi.spyOn(console, "error");
    const { client } = await visit.begin(visit.full);
    await reads(...full);
    expect(offered()).toEqual(expect.arrayContaining([...acts]));
    await waitFor(() => {
      expect([alerts(), skeletons()]).toEqual([[], 0]);
    });
    const [said] = complained.mock.calls.map(String).filter((one) => one.includes("same key"));
    expect(said).toBeUndefined();
    visit.answer = lost;
    connect(false);
    void client.refetchQueries();
    await reads("OFFLINE", ...full);
  });

  it("says where there is nothing", async () => {
    if (empty === "missing") {
      await visit.begin(refusal(404, "NOT_FOUND"));
      await reads(title, SENTENCE, "NOT_FOUND");
    } else {
      await visit.begin(visit.nothing);
      await reads(empty.says);
      if (empty.offers !== undefined) expect(offered()).toContain(empty.offers);
    }
    expect(isFull()).toBe(false);
  });

  it("has room for what is on its way, says why it was refused, and asks again", async () => {
    await visit.begin(never);
    await reads(title);
    const [waiting, parts] = [skeletons(), headings().slice(1)];
    expect([waiting > 0, isFull()]).toEqual([true, false]);
    cleanup();
    await visit.begin(refusal(422, "SOMETHING_WRONG"));
    await reads(title, SENTENCE, "SOMETHING_WRONG");
    await waitFor(() => {
      // Each part that waited says why it has nothing.
      expect([alerts().length, skeletons()]).toEqual([waiting, 0]);
    });
    visit.answer = visit.full;
    askAgain();
    await reads(...full);
    expect(headings()).toEqual(expect.arrayContaining(parts));
  });

  it("says what a role may not, and offers whoever may only read nothing else", async () => {
    if (reader !== undefined) {
      await visit.begin(visit.full, READS);
      await reads(title, reader);
      expect(isFull()).toBe(false);
      return;
    }
    await visit.begin(refusal(403, "ROLE_NOT_ALLOWED"), READS);
    await reads(title, SENTENCE, "ROLE_NOT_ALLOWED");
    visit.answer = visit.full;
    askAgain();
    await waitFor(() => {
      expect([alerts(), skeletons()]).toEqual([[], 0]);
    });
    expect(offered().filter((one) => acts.includes(one))).toEqual([]);
  });

  it("says that there is no connection, and comes by itself once there is one", async () => {
    connect(false);
    await visit.begin(lost);
    await reads(title, "The gateway cannot be reached.", "OFFLINE");
    expect(skeletons()).toBe(0);
    visit.answer = visit.full;
    connect(true);
    await reads(...full);
  });
}

/** Press "Try again" wherever it is offered. */
function askAgain(): void {
  const found = [...document.querySelectorAll("[role=alert] button")];
  expect(found.length).toBeGreaterThan(0);
  for (const one of found) fireEvent.click(one);
}
