import { fireEvent, screen, within } from "@testing-library/react";
import { useState } from "react";
import { expect, it } from "vitest";

import { json, one, refused, showOperator, toldIn } from "../../testing/render";

import { Limits } from "./Limits";
import { MerchantActs } from "./MerchantActs";
import type { MerchantRow } from "./queries";

const MERCHANT = {
  merchantId: "mrc_1",
  name: "Nordlicht",
  live: false,
  planId: null,
  suspendedAt: null,
} as MerchantRow;

function Page() {
  return (
    <>
      <h1>Nordlicht</h1>
      <MerchantActs merchant={MERCHANT} />
    </>
  );
}

it.each([
  ["Suspend", {}, { suspendedAt: "2026-01-31T12:00:00.000Z" }, "Reinstate"],
  ["Reinstate", { suspendedAt: "2026-01-31T12:00:00.000Z" }, {}, "Suspend"],
  ["Take live mode back", { live: true }, {}, "Grant live mode"],
  ["Grant live mode", {}, { live: true }, "Take live mode back"],
])(
  "%s: where it is done meanwhile, the dialog is gone and never offers the opposite",
  async (act, now, then, other) => {
    const Shown = () => {
      const [isDone, setDone] = useState(false);
      return (
        <>
          <h1>Nordlicht</h1>
          <button
            type="button"
            onClick={() => {
              setDone(true);
            }}
          >
            Done meanwhile
          </button>
          <MerchantActs merchant={{ ...MERCHANT, ...(isDone ? then : now) }} />
        </>
      );
    };
    const sent = await showOperator(Shown, {
      path: "merchants",
      permissions: ["merchants.suspend", "merchants.live"],
      answers: {},
    });
    fireEvent.click(await screen.findByRole("button", { name: act }));
    expect(await screen.findByRole("dialog")).toBeTruthy();
    fireEvent.click(screen.getByText("Done meanwhile"));
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(screen.getByRole("button", { name: other })).toBeTruthy();
    expect(sent.every((request) => request.method === "GET")).toBe(true);
  },
);

it("a plan that is given has the plans asked for again, which say how many merchants have each", async () => {
  let given: unknown = null;
  const plan = { planId: "pln_1", name: "Growth", archivedAt: null };
  const sent = await showOperator(Page, {
    path: "merchants",
    permissions: ["merchants.plan"],
    answers: {
      "GET /api/admin/plans": { plans: [plan] },
      "PUT /api/admin/merchants/mrc_1/plan": async (request) => {
        given = await request.json();
        return json({ success: true });
      },
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Change the plan" }));
  const dialog = await screen.findByRole("dialog");
  fireEvent.click(within(dialog).getByRole("combobox"));
  fireEvent.click(await screen.findByRole("option", { name: "Growth", hidden: true }));
  fireEvent.click(within(dialog).getByRole("button", { name: "Change the plan" }));
  await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
  expect(given).toEqual({ planId: "pln_1" });
  expect(sent.filter((request) => request.method === "GET" && request.url.includes("/api/admin/plans"))).toHaveLength(
    2,
  );
});

it("a limit that is set beside somebody else’s tells of that one, and undoes nothing", async () => {
  const bodies: unknown[] = [];
  const theirs = { "memory/MEM": { perDay: "9" } };
  const sent = await showOperator(
    () => (
      <>
        <h1>Nordlicht</h1>
        <Limits merchantId="mrc_1" limits={{}} version={0} />
      </>
    ),
    {
      path: "merchants",
      permissions: ["merchants.limits", "chains.read"],
      answers: {
        "GET /api/admin/tokens": { ...one, tokens: [{ chain: "memory", symbol: "USDX" }] },
        "GET /api/admin/merchants/mrc_1": { merchant: MERCHANT, limits: theirs, limitsVersion: 1 },
        "PUT /api/admin/merchants/mrc_1/limits": async (request) => {
          bodies.push(await request.json());
          return bodies.length === 1 ? refused(409, "VERSION_MISMATCH") : json({ success: true });
        },
      },
    },
  );
  fireEvent.click(await screen.findByRole("button", { name: "Set a limit" }));
  const dialog = await screen.findByRole("dialog");
  fireEvent.click(within(dialog).getByRole("combobox"));
  fireEvent.click(await screen.findByRole("option", { name: "memory/USDX", hidden: true }));
  fireEvent.change(within(dialog).getByLabelText(/^In 24 hours/), { target: { value: "250" } });
  const act = within(dialog).getByRole("button", { name: "Set a limit" });
  fireEvent.click(act);
  const different = await within(dialog).findByRole("region", { name: "What is different by now" });
  expect(toldIn(different)).toEqual([["memory/MEM \u00b7 In 24 hours", "\u2013 \u2192 9"]]);
  expect(within(dialog).getByLabelText<HTMLInputElement>(/^In 24 hours/).value).toBe("250");
  fireEvent.click(act);
  await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
  const own = { "memory/USDX": { perDay: "250" } };
  expect(bodies).toEqual([
    { limits: own, version: 0 },
    { limits: { ...theirs, ...own }, version: 1 },
  ]);
  expect(sent.some((request) => request.method === "GET" && request.url.endsWith("/mrc_1"))).toBe(true);
});

it("a limit is said in its coin, and what there is none of holds as for everybody", async () => {
  await showOperator(
    () => (
      <>
        <h1>Nordlicht</h1>
        <Limits merchantId="mrc_1" limits={{ "memory/MEM": { perDay: "9000" } }} version={0} />
      </>
    ),
    { path: "merchants", permissions: ["merchants.read"], answers: {} },
  );
  const cells = within(await screen.findByRole("table", { name: "Limits of its own" })).getAllByRole("cell");
  const told = cells.map((cell) => (cell.querySelector("bdi") ?? cell).textContent);
  expect(told).toEqual(["memory/MEM", "as for everybody", "9,000 MEM", ""]);
});
