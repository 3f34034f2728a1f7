/** What every page that reads something keeps to: it has a heading, and says what it is waiting for or why it fails. */
import { screen } from "@testing-library/react";
import type { RouteComponent } from "@tanstack/react-router";
import { expect, it } from "vitest";

import { refused, show, type Answers } from "./render";

type Show = (page: RouteComponent, shown: { path: string; at: string; answers: Answers }) => Promise<unknown>;

interface Stateful {
  readonly page: RouteComponent;
  readonly path: string;
  readonly at?: string;
  /** The request without whose answer the page has nothing to show. */
  readonly asks: string;
  /** What else it asks for. */
  readonly others?: Answers;
  /** Whose page it is: a merchant's, or what shows an operator's. */
  readonly by?: Show;
}

/** Declare the tests of a page that is loading, refused, forbidden, and offline. */
export function keepsToStates({ page, path, at = path, asks, others = {}, by = show }: Stateful): void {
  const shown = (answer: () => Response | Promise<Response>) =>
    by(page, { path, at, answers: { ...others, [asks]: answer } });

  it("has its heading, and says that it loads, until the gateway answers", async () => {
    await shown(() => new Promise(() => undefined));
    expect(screen.getAllByRole("status", { name: "Loading" }).length).toBeGreaterThan(0);
  });

  it.each([
    ["is refused", () => refused(422, "SOMETHING_WRONG"), "SOMETHING_WRONG"],
    ["is forbidden", () => refused(403, "ROLE_NOT_ALLOWED"), "ROLE_NOT_ALLOWED"],
    ["is offline", () => Promise.reject<Response>(new TypeError("Failed to fetch")), "OFFLINE"],
  ])("has its heading, and the code, where it %s", async (_, answer, code) => {
    await shown(answer);
    expect(await screen.findByText(code)).toBeTruthy();
    expect(screen.getByRole("heading", { level: 1 })).toBeTruthy();
    expect(screen.getAllByRole("button", { name: "Try again" }).length).toBeGreaterThan(0);
  });
}
