import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, nothing, one, PROJECT, show, type Answers } from "../../testing/render";

import { NewPayout } from "./NewPayout";
import { PayoutList } from "./PayoutList";
import { PayoutPage } from "./PayoutPage";
import type { Payout } from "./queries";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const TO = "0x5555555555555555555555555555555555555555";
const SWAPPED: Payout = {
  payoutId: "po_1",
  kind: "payout",
  status: "processing",
  mode: "live",
  chain: "base",
  token: "USDC",
  contractAddress: null,
  decimals: 6,
  amount: "99.45",
  toAddress: TO,
  txHash: null,
  fee: null,
  error: null,
  errorCode: null,
  waitsFor: null,
  waitsForText: null,
  batchId: null,
  swap: {
    txnId: "xch_1",
    kind: "bridge",
    srcChain: "polygon",
    srcToken: "USDT",
    srcAmount: "100",
    expectedAmount: "99.95",
    minAmount: "99.45",
    txHash: null,
  },
  createdAt: "2026-01-01T12:00:00.000Z",
  updatedAt: "2026-01-01T12:00:00.000Z",
  completedAt: null,
};
const BALANCE = { chain: "polygon", token: "USDT", decimals: 6, available: "3000", pending: "0", held: "0" };
const WALLET = { [`GET ${BASE}/wallet`]: { success: true, mode: "live", balances: [BALANCE] } };

function factOf(name: string): string | null | undefined {
  return screen.getByText(name, { selector: "dt" }).nextElementSibling?.textContent;
}

async function page(payout: Payout): Promise<void> {
  await show(PayoutPage, {
    path: "payouts/$payoutId",
    at: "payouts/po_1",
    answers: {
      [`GET ${BASE}/wallet/payouts/po_1`]: { success: true, payout },
      [`GET ${BASE}/events`]: { ...nothing, events: [] },
    },
  });
  await screen.findByText("Transaction", { selector: "dt" }).catch(() => undefined);
}

describe("a payout in another coin", () => {
  it("says what it is paid out of, and that its amount is the least until it is completed", async () => {
    await page({ ...SWAPPED, txHash: "0xaa" });
    expect(factOf("At least")).toContain("99.45 USDC");
    expect(factOf("Given")).toContain("100 USDT");
    expect(factOf("Type")).toBe("Payout");
    expect(screen.getByRole("link", { name: "xch_1" }).getAttribute("href")).toBe(`/${PROJECT}/exchanges/xch_1`);
  });

  it("has its amount once it is completed, and tells an auto-payout from a person's", async () => {
    await page({ ...SWAPPED, txHash: "0xaa", status: "completed", amount: "99.9", kind: "auto_payout" });
    expect(factOf("Amount")).toContain("99.9 USDC");
    expect(factOf("Type")).toBe("Auto-payout");
    expect(screen.queryByText("At least", { selector: "dt" })).toBeNull();
  });

  it("stands in the list as what it will be at least; the list is filtered as the address says", async () => {
    const sent = await show(PayoutList, {
      path: "payouts",
      at: "payouts?chain=base&token=USDC&until=2026-01-02&sort=createdAt",
      answers: { ...WALLET, [`GET ${BASE}/wallet/payouts`]: { ...one, payouts: [SWAPPED] } },
    });
    const table = await screen.findByRole("table", { name: "Payouts" });
    expect(within(table).getByText("at least")).toBeTruthy();
    const asked = new URL(sent.find(({ url }) => url.includes("/wallet/payouts?"))?.url ?? "").searchParams;
    const wanted = { limit: "25", page: "1", chain: "base", token: "USDC", sort: "createdAt" };
    expect(Object.fromEntries(asked)).toEqual({ ...wanted, to: new Date(2026, 0, 3).toISOString() });
  });

  const FEES = {
    success: true,
    swapFeePercent: 0,
    bridgeFeePercent: 0,
    defaultSlippage: 1,
    autoConvertMarkupPercent: 0,
  };
  const coins = [{ chain: "base", token: "USDC", decimals: 6, label: "USDC", availability: "live", enabled: true }];
  const answers = (payoutSwapEnabled: boolean): Answers => ({
    ...WALLET,
    [`GET ${BASE}/swap-bridge/platform-fees`]: { ...FEES, payoutSwapEnabled },
    [`GET ${BASE}/wallet/coins`]: { success: true, coins },
    [`GET ${BASE}/swap-bridge/pairs`]: {
      success: true,
      pairs: [{ kind: "bridge", destChain: "base", destToken: "USDC" }],
    },
  });

  it("is filtered by every token that the project has, also where the wallet holds none of it", async () => {
    const coin = (chain: string, token: string) => ({ chain, token, decimals: 6, label: token, enabled: true });
    const mine = [coin("base", "USDC"), coin("polygon", "USDT"), coin("polygon", "USDC")];
    await show(PayoutList, {
      path: "payouts",
      answers: {
        ...WALLET,
        [`GET ${BASE}/wallet/payouts`]: { ...one, payouts: [SWAPPED] },
        [`GET ${BASE}/wallet/coins`]: { success: true, coins: mine },
      },
    });
    fireEvent.click(await screen.findByRole("combobox", { name: "Token" }));
    const options = await screen.findAllByRole("option", { name: /^USD/, hidden: true });
    expect(options.map((option) => option.textContent)).toEqual(["USDC", "USDT"]);
  });

  it("is offered where the operator allows it, quoted first, and sent as it was typed", async () => {
    const bodies: Record<string, unknown>[] = [];
    await show(NewPayout, {
      path: "payouts/new",
      answers: {
        ...answers(true),
        [`POST ${BASE}/swap-bridge/bridge/quote`]: {
          success: true,
          quote: {
            provider: "across",
            srcChain: "polygon",
            srcToken: "USDT",
            srcAmount: "100",
            destChain: "base",
            destToken: "USDC",
            dstAmount: "99.95",
            slippagePercent: 1,
            platformFee: null,
            fees: [],
            fillDeadline: null,
            estimatedFillSeconds: null,
          },
        },
        [`POST ${BASE}/wallet/payout`]: async (request) => {
          bodies.push((await request.json()) as Record<string, unknown>);
          return json({ success: true, payout: SWAPPED }, 201);
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "In another coin" }));
    fireEvent.click(screen.getByRole("combobox", { name: /Out of/ }));
    fireEvent.click(await screen.findByRole("option", { name: "USDT · polygon 3,000", hidden: true }));
    const field = (name: RegExp) => screen.getByRole("textbox", { name });
    fireEvent.change(field(/^To address/), { target: { value: TO } });
    fireEvent.change(field(/^Amount of USDT/), { target: { value: "100" } });
    fireEvent.click(screen.getByRole("combobox", { name: /The recipient gets/ }));
    fireEvent.click(await screen.findByRole("option", { name: "USDC · base", hidden: true }));
    fireEvent.click(screen.getByRole("button", { name: "Get a quote" }));
    fireEvent.click(await screen.findByRole("button", { name: "Pay out" }));
    const dialog = await screen.findByRole("dialog", { name: "Pay this out?" });
    for (const part of ["99.95 USDC", TO, "Live"]) expect(dialog.textContent).toContain(part);
    fireEvent.click(within(dialog).getByRole("button", { name: "Pay out" }));
    expect(await screen.findByText("elsewhere")).toBeTruthy();
    const { idempotencyKey, ...body } = bodies[0] ?? {};
    expect(idempotencyKey).toBeTruthy();
    expect(body).toEqual({
      chain: "base",
      token: "USDC",
      toAddress: TO,
      srcChain: "polygon",
      srcToken: "USDT",
      srcAmount: "100",
      slippage: 1,
    });
  });

  it("marks what was refused of it, until something is changed", async () => {
    const details = [{ field: "destToken", message: "must be another token than the one that is given" }];
    const body = { success: false, error: "No.", code: "VALIDATION_ERROR", details };
    await show(NewPayout, {
      path: "payouts/new",
      answers: { ...answers(true), [`POST ${BASE}/swap-bridge/bridge/quote`]: () => json(body, 400) },
    });
    fireEvent.click(await screen.findByRole("button", { name: "In another coin" }));
    fireEvent.click(screen.getByRole("combobox", { name: /Out of/ }));
    fireEvent.click(await screen.findByRole("option", { name: "USDT · polygon 3,000", hidden: true }));
    const field = (name: RegExp) => screen.getByRole("textbox", { name });
    fireEvent.change(field(/^To address/), { target: { value: TO } });
    fireEvent.change(field(/^Amount of USDT/), { target: { value: "100" } });
    const coin = screen.getByRole("combobox", { name: /The recipient gets/ });
    fireEvent.click(coin);
    fireEvent.click(await screen.findByRole("option", { name: "USDC · base", hidden: true }));
    fireEvent.click(screen.getByRole("button", { name: "Get a quote" }));
    await expect.poll(() => coin.getAttribute("aria-invalid"), { timeout: 20_000 }).toBe("true");
    expect(field(/^Amount of USDT/).getAttribute("aria-invalid")).not.toBe("true");
    fireEvent.change(field(/^Amount of USDT/), { target: { value: "99" } });
    expect(coin.getAttribute("aria-invalid")).not.toBe("true");
  });

  it("is not offered where the operator does not", async () => {
    const sent = await show(NewPayout, { path: "payouts/new", answers: answers(false) });
    await expect.poll(() => sent.some(({ url }) => url.endsWith("/platform-fees")), { timeout: 20_000 }).toBe(true);
    expect(await screen.findByRole("button", { name: "One payout" })).toBeTruthy();
    expect(screen.queryByRole("button", { name: "In another coin" })).toBeNull();
  });
});

describe("a payout of one coin", () => {
  it("is of all that is available where that is asked for, and not of more decimals than the coin has", async () => {
    await show(NewPayout, { path: "payouts/new", answers: WALLET });
    fireEvent.click(await screen.findByRole("combobox", { name: /Out of/ }));
    fireEvent.click(await screen.findByRole("option", { name: "USDT · polygon 3,000", hidden: true }));
    const amount = screen.getByRole<HTMLInputElement>("textbox", { name: /^Amount/ });
    const check = screen.getByRole<HTMLButtonElement>("button", { name: "Check" });
    fireEvent.change(screen.getByRole("textbox", { name: /^To address/ }), { target: { value: TO } });
    expect(check.disabled).toBe(true);
    fireEvent.change(amount, { target: { value: "0.0000001" } });
    expect(
      screen.getByText("A plain decimal number with at most 6 decimals, with a point and not a comma"),
    ).toBeTruthy();
    expect(check.disabled).toBe(true);
    fireEvent.click(screen.getByRole("button", { name: "All that is available" }));
    expect([amount.value, check.disabled]).toEqual(["3000", false]);
    fireEvent.click(check);
    const dialog = await screen.findByRole("dialog", { name: "Pay this out?" });
    expect(dialog.textContent).toContain("3,000 USDT");
    // What is pressed in it is no second press of "Check".
    expect(dialog.closest("form")).toBeNull();
  });

  it("marks what was refused once the dialog is closed, for this coin, until something is typed", async () => {
    await show(NewPayout, {
      path: "payouts/new",
      answers: {
        [`GET ${BASE}/wallet`]: { success: true, mode: "live", balances: [BALANCE, { ...BALANCE, token: "POL" }] },
        [`POST ${BASE}/wallet/payout`]: () => {
          const details = [{ field: "toAddress", message: "is no address on Polygon" }];
          return json({ success: false, error: "toAddress is wrong", code: "INVALID_ADDRESS", details }, 400);
        },
      },
    });
    const choose = async (coin: string) => {
      fireEvent.click(await screen.findByRole("combobox", { name: /Out of/ }));
      fireEvent.click(await screen.findByRole("option", { name: `${coin} · polygon 3,000`, hidden: true }));
    };
    await choose("USDT");
    const to = screen.getByRole("textbox", { name: /^To address/ });
    fireEvent.change(to, { target: { value: "0x55" } });
    fireEvent.change(screen.getByRole("textbox", { name: /^Amount/ }), { target: { value: "1" } });
    fireEvent.click(screen.getByRole("button", { name: "Check" }));
    const dialog = await screen.findByRole("dialog", { name: "Pay this out?" });
    fireEvent.click(within(dialog).getByRole("button", { name: "Pay out" }));
    expect(await within(dialog).findByText("INVALID_ADDRESS")).toBeTruthy();
    fireEvent.click(within(dialog).getByRole("button", { name: "Cancel" }));
    expect(await screen.findByText("Is no address on Polygon")).toBeTruthy();
    expect(to.getAttribute("aria-invalid")).toBe("true");
    await choose("POL");
    expect(screen.queryByText("Is no address on Polygon")).toBeNull();
    await choose("USDT");
    expect(screen.getByText("Is no address on Polygon")).toBeTruthy();
    fireEvent.change(to, { target: { value: TO } });
    expect(screen.queryByText("Is no address on Polygon")).toBeNull();
  });

  it("offers nothing of a balance that is empty", async () => {
    const wallet = { success: true, mode: "live", balances: [{ ...BALANCE, available: "0" }] };
    await show(NewPayout, { path: "payouts/new", answers: { [`GET ${BASE}/wallet`]: wallet } });
    fireEvent.click(await screen.findByRole("combobox", { name: /Out of/ }));
    fireEvent.click(await screen.findByRole("option", { name: "USDT · polygon 0", hidden: true }));
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "All that is available" }).disabled).toBe(true);
  });
});

describe("whoever has no second factor", () => {
  it("is told so before anything is typed, and led to where it is turned on", async () => {
    await show(NewPayout, { path: "payouts/new", answers: WALLET, member: { hasTwoFactor: false } });
    const note = await screen.findByRole("note");
    expect(note.textContent).toContain("two-factor authentication");
    const href = within(note).getByRole("link", { name: "Security" }).getAttribute("href");
    expect(href).toBe(`/${PROJECT}/security?next=%2F${PROJECT}%2Fpayouts%2Fnew`);
  });

  it("is not held up in the sandbox, nor told so with one", async () => {
    await show(NewPayout, { path: "payouts/new", answers: WALLET, mode: "sandbox", member: { hasTwoFactor: false } });
    await screen.findByRole("button", { name: "One payout" });
    expect(screen.queryByRole("note")).toBeNull();
  });
});
