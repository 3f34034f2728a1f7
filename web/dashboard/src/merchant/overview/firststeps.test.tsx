import { fireEvent, screen, within } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";

import { json, nothing, one, PROJECT, show, type Answers } from "../../testing/render";
import { keepsToStates } from "../../testing/states";

import { OverviewPage } from "./OverviewPage";

const OVERVIEW = "GET /api/dashboard/overview";
const AT = `/api/dashboard/projects/${PROJECT}`;
const KEYS = `GET /api/merchant/projects/${PROJECT}/api-keys`;
const STATES = ["pending", "detected", "confirming", "paid", "overpaid", "underpaid", "expired", "failed", "refunded"];
const payments = {
  made: 0,
  open: 0,
  paid: 0,
  conversionPercent: null,
  states: Object.fromEntries(STATES.map((state) => [state, 0])),
};
const EMPTY = {
  currency: "usd",
  step: "day",
  attention: [],
  turnover: { payments, deposits: 0, fiat: "0.00", unpriced: 0, coins: [], series: [] },
  balances: { fiat: "0.00", unpriced: 0, coins: [] },
};

/** What the gateway answers when so much was done. */
const answers = ({ keys = 0, isPaid = false, isTaken = false }): Answers => ({
  [OVERVIEW]: EMPTY,
  [KEYS]: { keys: Array.from({ length: keys }, (_, number) => ({ keyId: `key_${number}` })) },
  [`GET ${AT}/events`]: { ...nothing, events: isPaid ? [{ eventId: "evt_1" }] : [] },
  [`GET ${AT}/deliveries`]: { ...nothing, deliveries: isTaken ? [{ deliveryId: "whd_1" }] : [] },
});
const page = { path: "overview", mode: "sandbox" } as const;

afterEach(() => {
  localStorage.removeItem("cambist-first-steps-hidden");
});

describe("the overview", () => {
  keepsToStates({ page: OverviewPage, path: "overview", asks: OVERVIEW });

  it("says in the sandbox what is left to do, and pays a payment when it is asked to", async () => {
    const bodies: unknown[] = [];
    let isPaid = false;
    const sent = await show(OverviewPage, {
      ...page,
      permissions: ["read", "payments", "projects.change"],
      answers: {
        ...answers({}),
        [`GET ${AT}/events`]: () =>
          json(isPaid ? { ...one, events: [{ eventId: "evt_1" }] } : { ...nothing, events: [] }),
        [`GET ${AT}/wallet/coins`]: {
          coins: [
            { chain: "polygon", token: "POL", enabled: true },
            { chain: "polygon", token: "USDC", enabled: false },
            { chain: "tron", token: "USDT", enabled: true },
          ],
        },
        [`POST ${AT}/payments`]: async (request) => {
          bodies.push(await request.json());
          return json({ payment: { paymentId: "pay_1", requiredConfirmations: 19 } }, 201);
        },
        [`POST ${AT}/sandbox/deposit`]: async (request) => {
          bodies.push(await request.json());
          isPaid = true;
          return json({ success: true });
        },
      },
    });
    const steps = await screen.findByRole("list", { name: "First steps" });
    expect(within(steps).getAllByText("To do")).toHaveLength(4);
    expect(within(steps).getByRole("link", { name: "API keys" }).getAttribute("href")).toBe(`/${PROJECT}/keys`);
    const asked = sent.filter((request) => /events|deliveries/.test(request.url)).map((one) => new URL(one.url).search);
    expect(asked.sort()).toEqual(["?event=payment.paid&limit=1", "?event=payment.paid&limit=1&status=delivered"]);
    fireEvent.click(within(steps).getByRole("button", { name: "Make a payment and pay it" }));
    await expect.poll(() => within(steps).queryAllByText("To do").length, { timeout: 20_000 }).toBe(3);
    expect(bodies).toEqual([
      { chain: "tron", token: "USDT", pricingMode: "direct_crypto", amount: "10" },
      { paymentId: "pay_1", confirmations: 19 },
    ]);
  });

  it("offers no steps to whoever may not take them", async () => {
    await show(OverviewPage, { ...page, permissions: ["read"], answers: answers({}) });
    const steps = await screen.findByRole("list", { name: "First steps" });
    expect(within(steps).queryByRole("button")).toBeNull();
    expect(within(steps).queryByRole("link")).toBeNull();
  });

  it.each([
    ["are all done", { ...page, answers: answers({ keys: 1, isPaid: true, isTaken: true }) }],
    ["are for no live project", { path: "overview", answers: answers({}) }],
  ])("says nothing of first steps that %s", async (_, shown) => {
    await show(OverviewPage, shown);
    expect(await screen.findByText("Nothing needs attention.")).toBeTruthy();
    expect(screen.queryByRole("list", { name: "First steps" })).toBeNull();
  });

  it("hides them for good", async () => {
    await show(OverviewPage, { ...page, answers: answers({}) });
    fireEvent.click(await screen.findByRole("button", { name: "Hide" }));
    expect(screen.queryByRole("list", { name: "First steps" })).toBeNull();
    expect(localStorage.getItem("cambist-first-steps-hidden")).toBe(JSON.stringify([PROJECT]));
  });
});
