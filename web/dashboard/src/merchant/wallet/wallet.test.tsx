import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { one, PROJECT, show, type Answers } from "../../testing/render";

import { WalletPage } from "./WalletPage";

const BASE = `/api/dashboard/projects/${PROJECT}/wallet`;
const COIN = {
  chain: "polygon",
  token: "USDT",
  contractAddress: null,
  decimals: 6,
  available: "0",
  pending: "0",
  held: "0",
  receivable: "0",
  price: null,
  priceSource: null,
  pricedAt: null,
  fiat: null,
};
const MOVEMENT = {
  id: "mov_1",
  type: "payout",
  chain: "polygon",
  token: "USDT",
  contractAddress: null,
  amount: "2",
  from: "available",
  to: "pending",
  createdAt: "2026-01-01T12:00:00.000Z",
  fiatValue: null,
  txHash: null,
};

const COLLECTION = {
  collectionId: "col_1",
  status: "sending",
  chain: "polygon",
  token: "USDT",
  amount: "7.5",
  fromAddress: "0x5555555555555555555555555555555555555555",
  deposits: 1,
  txHash: null,
  createdAt: "2026-01-01T12:00:00.000Z",
  completedAt: null,
};

function answers(coins: readonly object[], transactions: readonly object[] = []): Answers {
  const balances = { coins, fiat: "0.00", unpriced: coins.length };
  return {
    [`GET ${BASE}`]: { success: true, mode: "live", balances: [COIN, { ...COIN, token: "USDC" }] },
    [`GET ${BASE}/worth`]: { success: true, balances, currency: "usd", currencies: ["usd"] },
    [`GET ${BASE}/addresses`]: { success: true, addresses: [] },
    [`GET ${BASE}/transactions`]: { ...one, mode: "live", transactions },
    [`GET ${BASE}/collections`]: { ...one, limit: 100, total: 101, collections: [COLLECTION] },
  };
}

describe("the balances", () => {
  it("say what is owed of a coin, and of no other", async () => {
    const coins = [
      { ...COIN, receivable: "-5.25" },
      { ...COIN, token: "USDC" },
    ];
    await show(WalletPage, { path: "wallet", answers: answers(coins) });
    const table = await screen.findByRole("table", { name: "Balances" });
    expect(within(table).getByRole("columnheader", { name: "Owed" })).toBeTruthy();
    expect(within(table).getByRole("row", { name: /USDT.*5\.25/ })).toBeTruthy();
    expect(within(table).getByRole("row", { name: /USDC/ }).textContent).toContain("–");
  });

  it("have no room for debts where there is none", async () => {
    await show(WalletPage, { path: "wallet", answers: answers([COIN]) });
    const table = await screen.findByRole("table", { name: "Balances" });
    expect(within(table).queryByRole("columnheader", { name: "Owed" })).toBeNull();
  });
});

describe("the statement", () => {
  it("leads from each movement to what it belongs to", async () => {
    const movements = [
      { ...MOVEMENT, payoutId: "po_1" },
      { ...MOVEMENT, id: "mov_2", refundId: "ref_1", paymentId: "pay_1" },
      { ...MOVEMENT, id: "mov_3", withdrawalId: "wdr_1" },
      { ...MOVEMENT, id: "mov_4", txnId: "xch_1" },
      { ...MOVEMENT, id: "mov_5", paymentId: "pay_1" },
      { ...MOVEMENT, id: "mov_6" },
    ];
    await show(WalletPage, { path: "wallet", answers: answers([COIN], movements) });
    const table = await screen.findByRole("table", { name: "Statement" });
    const links = within(table).getAllByRole("link");
    expect(links.map((link) => [link.textContent, link.getAttribute("href")])).toEqual([
      ["Payout po_1", `/${PROJECT}/payouts/po_1`],
      ["Refund ref_1", `/${PROJECT}/refunds/ref_1`],
      ["Withdrawal wdr_1", `/${PROJECT}/withdrawals/wdr_1`],
      ["Swap or bridge xch_1", `/${PROJECT}/exchanges/xch_1`],
      ["Payment pay_1", `/${PROJECT}/payments/pay_1`],
    ]);
  });

  it("is asked for as the address says, and saved with the same filters", async () => {
    const sent = await show(WalletPage, {
      path: "wallet",
      at: "wallet?chain=polygon&token=USDT&type=refund&from=2026-01-02&currency=usd",
      answers: answers([COIN], [MOVEMENT]),
    });
    await screen.findByRole("table", { name: "Statement" });
    const asked = (end: string) =>
      Object.fromEntries(new URL(sent.findLast(({ url }) => url.includes(end))?.url ?? "").searchParams);
    const wanted = { chain: "polygon", token: "USDT", type: "refund", from: new Date(2026, 0, 2).toISOString() };
    expect(asked("/transactions?")).toEqual({ limit: "25", page: "1", ...wanted });
    const statement = within(screen.getByRole("region", { name: "Statement" }));
    fireEvent.click(statement.getByRole("button", { name: "Download CSV" }));
    await expect.poll(() => sent.some(({ url }) => url.includes("/transactions.csv")), { timeout: 20_000 }).toBe(true);
    expect(asked("/transactions.csv")).toEqual(wanted);
    fireEvent.click(statement.getByRole("button", { name: /When/ }));
    await expect
      .poll(() => asked("/transactions?"), { timeout: 20_000 })
      .toEqual({ limit: "25", page: "1", ...wanted, sort: "createdAt" });
  });

  it("says where no movement is like that", async () => {
    const empty = { ...answers([COIN]), [`GET ${BASE}/transactions`]: { ...one, total: 0, transactions: [] } };
    await show(WalletPage, { path: "wallet", at: "wallet?type=refund", answers: empty });
    expect(await screen.findByText("No movement is like that")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Clear the filters" }));
    expect(await screen.findByText("No movement yet")).toBeTruthy();
  });
});

describe("the collections", () => {
  it("say what is brought into the wallet, and that there are older ones", async () => {
    await show(WalletPage, { path: "wallet", answers: answers([COIN]) });
    const section = within(await screen.findByRole("region", { name: "Collections" }));
    expect(within(await section.findByRole("row", { name: /7\.5/ })).getByText("Sending")).toBeTruthy();
    expect(section.getByText("Only the newest 100 are shown.")).toBeTruthy();
  });
});
