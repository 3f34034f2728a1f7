import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { nothing, showOperator } from "../../testing/render";

import { MerchantPage } from "./MerchantPage";

it("what needs attention of a merchant leads to lists of that merchant's alone, and not to the merchant", async () => {
  const one = (code: string) => ({ code, message: `About ${code}.`, count: 2, since: null });
  const standing = {
    mode: "sandbox",
    attention: ["RESOLUTIONS_OPEN", "PAYOUTS_FAILED", "RECEIVABLE_OUTSTANDING", "KEYS_EXPIRING"].map(one),
    balances: [],
    credits: { balance: -1_200 },
    used: { cpt: 0, webhooks: 0, addresses: 0 },
  };
  const merchant = {
    merchantId: "mer_7",
    name: "Nordlicht",
    email: "ada@nordlicht.example",
    live: true,
    planId: null,
    lastActiveAt: null,
    suspendedAt: null,
    suspensionReason: null,
    createdAt: "2026-01-01T12:00:00.000Z",
  };
  const whole = { plan: { name: "Growth" }, members: [], projects: [], limits: {}, limitsVersion: 1 };
  await showOperator(MerchantPage, {
    path: "merchants/$merchantId",
    at: "merchants/mer_7",
    permissions: ["merchants.read", "records.read", "resolutions.read"],
    answers: { "GET /api/admin/merchants/mer_7": { ...nothing, ...whole, merchant, modes: [standing] } },
  });
  const list = await screen.findByRole("list", { name: "What needs attention" });
  const links = within(list).getAllByRole("link");
  expect(links.map((link) => link.getAttribute("href"))).toEqual([
    "/resolutions?merchantId=mer_7&mode=sandbox",
    "/payouts?status=failed&merchant=mer_7&mode=sandbox",
    "/refunds?status=failed&merchant=mer_7&mode=sandbox",
    "/withdrawals?status=failed&merchant=mer_7&mode=sandbox",
  ]);
  expect(screen.getByText("\u22121,200")).toBeTruthy();
});
