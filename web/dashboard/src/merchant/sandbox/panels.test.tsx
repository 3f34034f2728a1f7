import { cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { DESCRIBED } from "../../testing/described";
import { json, PROJECT, show } from "../../testing/render";
import { PaymentPage } from "../payments/PaymentPage";
import { PayoutPage } from "../payouts/PayoutPage";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const PANEL = { name: "Sandbox: be the customer and the chain" };
const example = (path: string) => DESCRIBED.merchant.example(path) ?? {};

function paymentOf(changed: object) {
  const { payment } = example(`${BASE}/payments/pay_1`) as { readonly payment: object };
  return { payment: { ...payment, paymentId: "pay_1", token: "USDT", decimals: 6, deposits: [], ...changed } };
}

const COINS = {
  coins: [
    { chain: "ethereum", token: "USDT", enabled: true },
    { chain: "ethereum", token: "ETH", enabled: true },
    { chain: "tron", token: "TRX", enabled: true },
  ],
};

it("pays a payment exactly, too little, too much or in another token", async () => {
  const bodies: object[] = [];
  await show(PaymentPage, {
    path: "payments/$paymentId",
    at: "payments/pay_1",
    mode: "sandbox",
    answers: {
      [`GET ${BASE}/payments/pay_1`]: paymentOf({ chain: "ethereum", expectedAmount: "20", receivedAmount: "5" }),
      [`GET ${BASE}/wallet/coins`]: COINS,
      [`POST ${BASE}/sandbox/deposit`]: async (request) => {
        bodies.push((await request.json()) as object);
        return json({ success: true, chain: "ethereum", height: 17, blockHash: "0x1", txHash: "0x2" });
      },
    },
  });
  const panel = within(await screen.findByRole("region", PANEL));
  for (const name of ["Pay 15 USDT", "Pay too little: 7.5 USDT", "Pay too much: 17 USDT"]) {
    fireEvent.click(panel.getByRole("button", { name }));
  }
  await waitFor(() => {
    expect(bodies).toHaveLength(3);
  });
  expect(bodies).toEqual(["15", "7.5", "17"].map((amount) => ({ paymentId: "pay_1", amount })));
  expect(panel.getAllByText("ethereum is at block 17.")).toHaveLength(3);
  // Of other tokens, those on the payment's own chain: elsewhere its address means nothing.
  const token = await panel.findByRole<HTMLInputElement>("combobox", { name: "Token" });
  expect(token.value).toBe("ETH · ethereum");
  fireEvent.change(panel.getByLabelText(/^Amount/), { target: { value: "1" } });
  fireEvent.click(panel.getByRole("button", { name: "Pay in another token" }));
  await waitFor(() => {
    expect(bodies[3]).toEqual({
      paymentId: "pay_1",
      chain: "ethereum",
      token: "ETH",
      amount: "1",
      confirmations: 0,
    });
  });
});

it("takes back the block of the newest deposit, and says what was refused", async () => {
  const bodies: object[] = [];
  const deposits = [3, 7].map((confirmations) => ({
    ...(example(`${BASE}/payments/pay_1`) as { readonly payment: { readonly deposits: readonly object[] } }).payment
      .deposits[0],
    depositId: `dep_${String(confirmations)}`,
    txHash: `0x${String(confirmations)}`,
    confirmations,
  }));
  await show(PaymentPage, {
    path: "payments/$paymentId",
    at: "payments/pay_1",
    mode: "sandbox",
    answers: {
      [`GET ${BASE}/payments/pay_1`]: paymentOf({ chain: "ethereum", deposits }),
      [`POST ${BASE}/sandbox/reorg`]: async (request) => {
        bodies.push((await request.json()) as object);
        return json({ success: false, error: "Too deep.", code: "REORG_TOO_DEEP" }, 400);
      },
    },
  });
  const panel = within(await screen.findByRole("region", PANEL));
  fireEvent.click(panel.getByRole("button", { name: "Reorganize" }));
  expect(await panel.findByText("REORG_TOO_DEEP")).toBeTruthy();
  expect(bodies).toEqual([{ chain: "ethereum", depth: 4, transactions: "drop" }]);
});

it("is not there in a live project, and has nothing fail that has ended", async () => {
  const { payout } = example(`${BASE}/wallet/payouts/po_1`) as { readonly payout: object };
  const answers = (status: string) => ({
    [`GET ${BASE}/wallet/payouts/po_1`]: { payout: { ...payout, payoutId: "po_1", status } },
    [`POST ${BASE}/sandbox/fail-payout`]: { success: true, payout },
  });
  await show(PayoutPage, {
    path: "payouts/$payoutId",
    at: "payouts/po_1",
    mode: "live",
    answers: answers("requested"),
  });
  await screen.findByText("po_1");
  expect(screen.queryByRole("region", PANEL)).toBeNull();
  cleanup();
  await show(PayoutPage, {
    path: "payouts/$payoutId",
    at: "payouts/po_1",
    mode: "sandbox",
    answers: answers("completed"),
  });
  const panel = within(await screen.findByRole("region", PANEL));
  expect(panel.getByRole("button", { name: "Reorganize" })).toBeTruthy();
  expect(panel.queryByRole("button", { name: "Have it fail" })).toBeNull();
});

it("has a payout fail that is under way", async () => {
  const { payout } = example(`${BASE}/wallet/payouts/po_1`) as { readonly payout: object };
  const sent = await show(PayoutPage, {
    path: "payouts/$payoutId",
    at: "payouts/po_1",
    mode: "sandbox",
    answers: {
      [`GET ${BASE}/wallet/payouts/po_1`]: { payout: { ...payout, payoutId: "po_1", status: "requested" } },
      [`POST ${BASE}/sandbox/fail-payout`]: { success: true, payout },
    },
  });
  const panel = within(await screen.findByRole("region", PANEL));
  const acts = panel.getAllByRole("button").map((button) => button.textContent);
  expect(acts.indexOf("Mine")).toBeGreaterThanOrEqual(0);
  expect(acts.indexOf("Mine")).toBeLessThan(acts.indexOf("Have it fail"));
  fireEvent.click(panel.getByRole("button", { name: "Have it fail" }));
  expect(await panel.findByText("It fails in the block that takes it.")).toBeTruthy();
  expect(await sent.find(({ method }) => method === "POST")?.json()).toEqual({ payoutId: "po_1" });
});

it("offers as many blocks as have a payout confirmed, and on a phone is folded until it is asked for", async () => {
  const { payout } = example(`${BASE}/wallet/payouts/po_1`) as { readonly payout: object };
  const isPhone = vi
    .spyOn(globalThis, "matchMedia")
    .mockImplementation(
      (query) =>
        ({ matches: query === "(max-width: 640px)", addEventListener: vi.fn(), removeEventListener: vi.fn() }) as never,
    );
  await show(PayoutPage, {
    path: "payouts/$payoutId",
    at: "payouts/po_1",
    mode: "sandbox",
    answers: {
      "GET /api/public/chains": { success: true, chains: [{ chain: "tron", name: "TRON", defaultConfirmations: 19 }] },
      [`GET ${BASE}/wallet/payouts/po_1`]: {
        payout: { ...payout, payoutId: "po_1", status: "broadcast", chain: "tron" },
      },
    },
  });
  const panel = await screen.findByRole("region", PANEL);
  expect(panel.querySelector("details")?.open).toBe(false);
  isPhone.mockRestore();
  fireEvent.click(within(panel).getByRole("heading"));
  await waitFor(() => {
    expect(within(panel).getByLabelText<HTMLInputElement>("Blocks").value).toBe("20");
  });
});
