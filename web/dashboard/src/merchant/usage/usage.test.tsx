import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { nothing, one, PROJECT, refused, show, type Answers } from "../../testing/render";
import type { Schemas } from "../queries";

import { UsagePage } from "./UsagePage";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const PLAN: Schemas["OwnPlan"] = {
  success: true,
  mode: "live",
  plan: {
    planId: "pln_1",
    name: "Growth",
    hasTracker: true,
    chains: null,
    maxWebhooks: 100,
    maxAddresses: 10_000,
    requestsPerMinute: null,
    cptPerMonth: 500_000,
    priceUsd: "1249.50",
  },
  used: { webhooks: 3, addresses: 2100, addressesMost: 1000, month: "2026-01", cpt: 81_000, cptIncluded: 500_000 },
};
const credit = { balance: 40, floor: 100, currency: "CPT", mode: "live" };
const entry = { operation: "return", chain: "base", reference: "payout pay_1", projectId: PROJECT, amount: -50 };
const weights = { payment: 10, payout: 50, refund: 50, withdrawal: 50, collection: 5, swap: 80, bridge: 120 };
const COSTS: Schemas["CalculatorConfig"] = {
  success: true,
  chains: [
    { chain: "base", name: "Base", nativeSymbol: "ETH" },
    { chain: "tron", name: "TRON", nativeSymbol: "TRX" },
  ],
  weights: {
    chains: { default: weights, base: weights, tron: { ...weights, payout: 75 } },
    tracker: 1,
    apiMethod: 0,
    webhookDelivery: 2,
  },
  tiers: [
    { name: "Starter", minCpt: 0, maxCpt: 1_000_000, pricePer10kUsd: "1.00" },
    { name: "Scale", minCpt: 1_000_001, maxCpt: null, pricePer10kUsd: "0.80" },
  ],
  packs: [{ name: "100k", cpt: 100_000, priceUsd: "10.00" }],
  plans: [],
};
const answers: Answers = {
  "GET /api/public/cpt-calculator-config": COSTS,
  [`GET ${BASE}/plan`]: PLAN,
  [`GET ${BASE}/usage`]: {
    ...one,
    systemCredit: credit,
    usage: [{ ...entry, createdAt: "2026-01-01T12:00:00.000Z" }],
  },
};

it("shows how much of the plan is used, and what the credits went for", async () => {
  await show(UsagePage, { path: "usage", answers });
  const month = await screen.findByRole<HTMLProgressElement>("progressbar", { name: "Credits used in January 2026" });
  expect([month.value, month.max]).toEqual([81_000, 500_000]);
  expect(screen.getByText("81,000 of 500,000")).toBeTruthy();
  expect(screen.getByText("1,249.50 US dollars a month")).toBeTruthy();
  const row = await screen.findByRole("row", { name: /Given back/ });
  expect(within(row).getByText("−50")).toBeTruthy();
  expect(screen.getByRole("alert").textContent).toMatch(/refused/);
});

it.each([
  ["po_1", PROJECT, null, "payouts/po_1"],
  ["acc_1:ethereum", PROJECT, null, "accounts/acc_1"],
  ["payout:po_1", PROJECT, [PROJECT], "payouts/po_1"],
  ["po_1", "prj_2", [PROJECT], null], // that project is not open to who looks
  ["col_1", null, null, null],
])("leads from what was used to what it was used for: %s of %s", async (reference, projectId, projectIds, page) => {
  const made = { ...entry, reference, projectId, createdAt: "2026-01-01T12:00:00.000Z" };
  const usage = { ...one, systemCredit: credit, usage: [made] };
  const known = { ...answers, [`GET ${BASE}/usage`]: usage };
  await show(UsagePage, { path: "usage", answers: known, member: { projectIds } });
  const row = await screen.findByRole("row", { name: /Given back/ });
  const link = within(row).queryByRole("link");
  expect(link?.getAttribute("href")).toBe(page === null ? undefined : `/${PROJECT}/${page}`);
});

it.each([
  [null, PROJECT, []], // there is no other that it could be of
  [[PROJECT], PROJECT, ["Nordlicht"]],
  [[PROJECT], "prj_2", ["–"]],
])("names the project that it was used for, where there may be others: %j %s", async (projectIds, projectId, names) => {
  const usage = {
    ...one,
    systemCredit: credit,
    usage: [{ ...entry, projectId, createdAt: "2026-01-01T12:00:00.000Z" }],
  };
  await show(UsagePage, {
    path: "usage",
    answers: { ...answers, [`GET ${BASE}/usage`]: usage },
    member: { projectIds },
  });
  const table = await screen.findByRole("table", { name: "What was used" });
  const heads = within(table).getAllByRole("columnheader");
  const at = heads.findIndex((head) => head.textContent === "Project");
  const cells = [...(await screen.findByRole("row", { name: /Given back/ })).querySelectorAll("td")];
  expect(at === -1 ? [] : [cells[at]?.textContent]).toEqual(names);
});

it("keeps the plan where what was used cannot be read, and says where nothing was", async () => {
  await show(UsagePage, {
    path: "usage",
    answers: { ...answers, [`GET ${BASE}/usage`]: () => refused(422, "BROKEN") },
  });
  expect(await screen.findByText("BROKEN")).toBeTruthy();
  expect(screen.getByText("Growth")).toBeTruthy();
});

it("says where nothing was used yet", async () => {
  const empty = { ...nothing, systemCredit: { ...credit, balance: 500 }, usage: [] };
  await show(UsagePage, { path: "usage", answers: { ...answers, [`GET ${BASE}/usage`]: empty } });
  expect(await screen.findByText("Nothing was used yet")).toBeTruthy();
  expect(screen.queryByRole("alert")).toBeNull();
});

it("says what each operation costs on each chain, and what credits cost", async () => {
  await show(UsagePage, { path: "usage", answers });
  const costs = within(await screen.findByRole("table", { name: "What each operation costs" }));
  const cells = (name: RegExp) =>
    within(costs.getByRole("row", { name }))
      .getAllByRole("cell")
      .map((cell) => cell.textContent);
  expect(cells(/Base/)).toEqual(["Base", "10", "50", "50", "50", "5", "80", "120"]);
  expect(cells(/TRON/)).toEqual(["TRON", "10", "75", "50", "50", "5", "80", "120"]);
  const tiers = within(screen.getByRole("table", { name: "Tier" }));
  expect(tiers.getByText("0–1,000,000")).toBeTruthy();
  expect(tiers.getByText("1,000,001+")).toBeTruthy();
  expect(tiers.getByText("$0.80")).toBeTruthy();
  expect(within(screen.getByRole("table", { name: "Pack" })).getByText("100,000")).toBeTruthy();
});

it("sells nothing where no tier and no pack is offered", async () => {
  const none = { ...COSTS, tiers: [], packs: [] };
  await show(UsagePage, { path: "usage", answers: { ...answers, "GET /api/public/cpt-calculator-config": none } });
  expect(await screen.findByRole("table", { name: "What each operation costs" })).toBeTruthy();
  expect(screen.queryByRole("heading", { name: "How credits are bought" })).toBeNull();
});
