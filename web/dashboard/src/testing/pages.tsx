/**
 * The states of every page: full, empty, loading, refused, forbidden, offline. A page's entry says what it shows in
 * each; what all pages keep to is here.
 */
import { fireEvent, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";

import { declareForm, type Form } from "./forms";
import type { Answer } from "./render";
import {
  alerts,
  connect,
  headings,
  lost,
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

  it("says that there is no connection, has room for what comes then, says why it was refused, and keeps what came", async () => {
    const complained = vi.spyOn(console, "error");
    connect(false);
    const { client } = await visit.begin(lost);
    await reads(title, "The gateway cannot be reached.", "OFFLINE");
    await waitFor(() => {
      expect(skeletons()).toBe(0);
    });
    const silent = alerts().length;

    const refused = held(refusal(422, "SOMETHING_WRONG"));
    visit.answer = refused.answer;
    connect(true);
    await waitFor(() => {
      expect([alerts(), skeletons() > 0, isFull()]).toEqual([[], true, false]);
    });
    await reads(title);
    const [waiting, parts] = [skeletons(), headings().slice(1)];
    refused.release();
    await reads(title, SENTENCE, "SOMETHING_WRONG");
    await waitFor(() => {
      // Each part that waited says why it has nothing, and each said that there was no connection.
      expect([alerts().length, silent, skeletons()]).toEqual([waiting, waiting, 0]);
    });

    visit.answer = visit.full;
    askAgain();
    await reads(...full);
    await waitFor(() => {
      expect([alerts(), skeletons()]).toEqual([[], 0]);
    });
    expect(headings()).toEqual(expect.arrayContaining(parts));
    expect(offered()).toEqual(expect.arrayContaining([...acts]));

    visit.answer = lost;
    connect(false);
    void client.refetchQueries();
    await reads("OFFLINE", ...full);
    const [said] = complained.mock.calls.map(String).filter((one) => one.includes("same key"));
    expect(said).toBeUndefined();
  });

  it("has room for what is on its way, and says where there is nothing", async () => {
    const found = held(empty === "missing" ? refusal(404, "NOT_FOUND") : visit.nothing);
    await visit.begin(found.answer);
    await reads(title);
    expect([skeletons() > 0, isFull()]).toEqual([true, false]);
    found.release();
    if (empty === "missing") {
      await reads(title, SENTENCE, "NOT_FOUND");
    } else {
      await reads(empty.says);
      if (empty.offers !== undefined) expect(offered()).toContain(empty.offers);
    }
    await waitFor(() => {
      expect([skeletons(), isFull()]).toEqual([0, false]);
    });
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
}

/** Return an answer that is given once it is released. */
function held(answer: Answer) {
  let release: () => void = () => undefined;
  const isReleased = new Promise<void>((done) => {
    release = done;
  });
  return {
    answer: async (request: Request) => {
      await isReleased;
      return await answer(request);
    },
    release,
  };
}

/** Press "Try again" wherever it is offered. */
function askAgain(): void {
  const found = [...document.querySelectorAll("[role=alert] button")];
  expect(found.length).toBeGreaterThan(0);
  for (const one of found) fireEvent.click(one);
}
