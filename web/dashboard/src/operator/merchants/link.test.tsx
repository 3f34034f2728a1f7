import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { nothing, one, showOperator } from "../../testing/render";
import { IntentPage } from "../queue/IntentPage";
import { Payments } from "../records/pages";
import { SearchPage } from "../records/SearchPage";

import { MerchantPage } from "./MerchantPage";

const WHOSE = { merchantId: "mrc_7", merchantName: "Nordlicht", projectId: "prj_1", projectName: "Till", mode: "live" };
const PAYMENT = {
  ...WHOSE,
  paymentId: "pay_1",
  status: "paid",
  orderId: null,
  chain: "ethereum",
  token: "USDT",
  expectedAmount: "5",
  receivedAmount: "5",
  createdAt: "2026-01-01T12:00:00.000Z",
};

async function leads(name: string, to: string): Promise<void> {
  const link = await screen.findByRole<HTMLAnchorElement>("link", { name });
  expect(new URL(link.href).pathname + new URL(link.href).search).toBe(to);
}

it("leads from a record to its merchant, for whoever may read merchants", async () => {
  const answers = {
    "GET /api/admin/payments": { ...one, payments: [PAYMENT, { ...PAYMENT, paymentId: "pay_2", merchantId: null }] },
  };
  await showOperator(Payments, { path: "payments", permissions: ["merchants.read"], answers });
  await leads("Nordlicht", "/merchants/mrc_7");
  // What is no merchant's is the gateway's own.
  expect(within(screen.getByRole("table")).getByText("Gateway")).toBeTruthy();
});

it("names the merchant to whoever may not read merchants, and leads nowhere", async () => {
  await showOperator(Payments, {
    path: "payments",
    answers: { "GET /api/admin/payments": { ...one, payments: [PAYMENT] } },
  });
  expect(await screen.findByText("Nordlicht")).toBeTruthy();
  expect(screen.queryByRole("link", { name: "Nordlicht" })).toBeNull();
});

it("a merchant that is found leads to its page", async () => {
  const found = {
    ...WHOSE,
    kind: "merchants",
    id: "mrc_7",
    merchantId: null,
    status: null,
    createdAt: PAYMENT.createdAt,
  };
  await showOperator(SearchPage, {
    path: "search",
    at: "search?q=mrc_7",
    answers: { "GET /api/admin/search": { found: [found] } },
  });
  await leads("mrc_7", "/merchants/mrc_7");
});

it.each([
  ["payout", "payouts"],
  ["auto_payout", "payouts"],
  ["refund", "refunds"],
  ["withdrawal", "withdrawals"],
])("a %s in the queue leads to its record among %s", async (kind, list) => {
  const outbound = {
    ...WHOSE,
    intentId: "int_1",
    kind,
    state: "waiting",
    chain: "ethereum",
    payoutId: "po_1",
    txnId: null,
    token: "USDT",
    amount: "5",
    fromAddress: "0x52908400098527886E0F7030069857D2E4169EE7",
    toAddress: "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    toTag: null,
    askedBy: "key",
    waitsFor: null,
    behind: null,
    nonce: null,
    transactions: [],
    feeRaise: null,
    settlement: null,
    cancelAskedAt: null,
    createdAt: PAYMENT.createdAt,
    updatedAt: PAYMENT.createdAt,
  };
  await showOperator(IntentPage, {
    path: "queue/$intentId",
    at: "queue/int_1",
    answers: { "GET /api/admin/outbound/int_1": { outbound } },
  });
  await leads("po_1", `/${list}/po_1`);
});

it("what a merchant owes is shown where it owes anything", async () => {
  const balance = { chain: "ethereum", contractAddress: null, decimals: 6, available: "0", pending: "0", held: "0" };
  const standing = (balances: readonly object[]) => ({
    mode: "live",
    attention: [],
    balances,
    credits: { balance: 0 },
    used: { cpt: 0, webhooks: 0, addresses: 0 },
  });
  const whole = (balances: readonly object[]) => ({
    ...nothing,
    merchant: {
      merchantId: "mrc_7",
      name: "Nordlicht",
      email: "ada@nordlicht.example",
      live: true,
      planId: null,
      lastActiveAt: null,
      suspendedAt: null,
      suspensionReason: null,
      createdAt: PAYMENT.createdAt,
    },
    plan: { name: "Growth" },
    members: [],
    projects: [],
    limits: {},
    limitsVersion: 1,
    modes: [standing(balances)],
  });
  const at = { path: "merchants/$merchantId", at: "merchants/mrc_7" };
  const answered = (balances: readonly object[]) => ({ "GET /api/admin/merchants/mrc_7": whole(balances) });
  await showOperator(MerchantPage, {
    ...at,
    answers: answered([
      { ...balance, token: "USDT", receivable: "-5.5" },
      { ...balance, token: "DAI" },
    ]),
  });
  expect(await screen.findByRole("columnheader", { name: "Owed" })).toBeTruthy();
  expect(screen.getByRole("row", { name: /USDT/ }).textContent).toMatch(/[^-−]5\.5/);
});
