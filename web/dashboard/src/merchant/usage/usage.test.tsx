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
    priceUsd: "49",
  },
  used: { webhooks: 3, addresses: 2100, addressesMost: 1000, month: "2026-01", cpt: 81_000, cptIncluded: 500_000 },
};
const credit = { balance: 40, floor: 100, currency: "CPT", mode: "live" };
const entry = { operation: "return", chain: "base", reference: "payout pay_1", amount: -50 };
const answers: Answers = {
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
  const row = await screen.findByRole("row", { name: /Given back/ });
  expect(within(row).getByText("-50")).toBeTruthy();
  expect(screen.getByRole("alert").textContent).toMatch(/refused/);
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
