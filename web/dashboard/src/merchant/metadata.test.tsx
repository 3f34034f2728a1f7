import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { nothing, PROJECT, show } from "../testing/render";

import { AccountPage } from "./accounts/AccountPage";
import { PaymentPage } from "./payments/PaymentPage";
import { TRACKER } from "./trackers/samples";
import { TrackerPage } from "./trackers/TrackerPage";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const AT = "2026-01-01T12:00:00.000Z";
const KEPT = '{"user":987654321098765432,"share":0.10}';
const PAYMENT = {
  ...{ paymentId: "one", status: "paid", chain: "polygon", token: "USDT", pricingMode: "direct_crypto" },
  ...{ amount: "1", expectedAmount: "1", receivedAmount: "1", refundedAmount: "0", depositAddress: "0x55" },
  ...{
    contractAddress: null,
    requiredConfirmations: 1,
    orderId: null,
    customerName: null,
    customerEmail: null,
    webhookUrl: null,
  },
  ...{ successUrl: null, cancelUrl: null, deposits: [], depositsLeftOut: 0, orphanedDeposits: [] },
  ...{ orphanedDepositsLeftOut: 0, createdAt: AT, updatedAt: AT, expiresAt: AT },
};
const ACCOUNT = {
  ...{ accountId: "one", externalId: "user-4711", addresses: [], depositUrl: "https://pay.example/account/1" },
  ...{ isActive: true, createdAt: AT },
};

it.each([
  ["payment", PaymentPage, "payments/$paymentId", PAYMENT],
  ["account", AccountPage, "accounts/$accountId", ACCOUNT],
  ["webhook", TrackerPage, "trackers/$webhookId", TRACKER],
] as const)("what a shop keeps with a %s is shown as it wrote it", async (name, Page, path, thing) => {
  const at = path.replace(/\$.*/, "one");
  const text = JSON.stringify({ success: true, [name]: { ...thing, metadata: "KEPT" } }).replace('"KEPT"', KEPT);
  const headers = { "Content-Type": "application/json" };
  await show(Page, {
    path,
    at,
    permissions: ["read"],
    answers: {
      [`GET ${BASE}/${at}`]: () => new Response(text, { headers }),
      [`GET ${BASE}/events`]: { ...nothing, events: [] },
      [`GET ${BASE}/payments/refunds/list`]: { ...nothing, refunds: [] },
    },
  });
  const title = await screen.findByText("Metadata", { selector: "dt" });
  expect(title.nextElementSibling?.textContent).toBe(KEPT);
});
