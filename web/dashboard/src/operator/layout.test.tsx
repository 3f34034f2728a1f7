import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { showOperator } from "../testing/render";
import { Shell } from "../ui/Shell";

import { operatorSession } from "./api";

const nav = [{ items: ["overview", "jobs", "audit"].map((page) => ({ to: `/${page}`, label: page })) }];

function Page() {
  return (
    <Shell nav={nav} head={null} user={null} session={operatorSession} commands={[]} isTold>
      <h1>Jobs</h1>
    </Shell>
  );
}

it("where one is, is in sight in a navigation that is longer than the window", async () => {
  const shown: (string | null)[] = [];
  const scroll = vi.spyOn(Element.prototype, "scrollIntoView").mockImplementation(function (this: Element) {
    shown.push(this.textContent);
  });
  try {
    await showOperator(Page, { path: "jobs", answers: {} });
    await screen.findByRole("link", { name: "jobs" });
    await expect.poll(() => new Set(shown)).toEqual(new Set(["jobs"]));
  } finally {
    scroll.mockRestore();
  }
});
