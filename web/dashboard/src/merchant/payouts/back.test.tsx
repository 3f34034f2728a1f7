import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { nothing, PROJECT, show } from "../../testing/render";

import { NewPayout } from "./NewPayout";
import { PayoutPage } from "./PayoutPage";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const PAYOUT = {
  payoutId: "po_1",
  kind: "payout",
  chain: "polygon",
  token: "USDT",
  amount: "99.45",
  toAddress: "0x5555555555555555555555555555555555555555",
  txHash: null,
  fee: null,
  error: null,
  waitsFor: null,
  batchId: null,
  swap: null,
  createdAt: "2026-01-01T12:00:00.000Z",
  updatedAt: "2026-01-01T12:00:00.000Z",
  completedAt: null,
};

const SWAP = {
  kind: "bridge",
  srcChain: "ethereum",
  srcToken: "ETH",
  srcAmount: "1",
  expectedAmount: "100",
  minAmount: "99",
  txnId: "xch_1",
  txHash: null,
};

it.each([
  ["failed", null, true],
  ["cancelled", null, true],
  ["cancelling", null, false],
  ["broadcast", null, false],
  ["completed", null, false],
  // What was given for it is back, in its own coin.
  ["failed", SWAP, true],
  ["cancelled", SWAP, true],
  ["broadcast", SWAP, false],
  ["completed", SWAP, false],
])("says that its money is back only where it is: %s, out of %j", async (status, swap, isBack) => {
  await show(PayoutPage, {
    path: "payouts/$payoutId",
    at: "payouts/po_1",
    answers: {
      [`GET ${BASE}/wallet/payouts/po_1`]: { success: true, payout: { ...PAYOUT, status, swap } },
      [`GET ${BASE}/events`]: { ...nothing, events: [] },
    },
  });
  await screen.findByText("To address", { selector: "dt" });
  const link = screen.queryByRole("link", { name: "Back in your balance" });
  expect(link?.getAttribute("href")).toBe(isBack ? `/${PROJECT}/wallet` : undefined);
});

it("is of no balance that cannot leave, as its chain is not connected any more", async () => {
  const balance = { chain: "polygon", token: "USDT", decimals: 6, available: "3000", pending: "0", held: "0" };
  const coins = [{ chain: "polygon", token: "USDT", availability: "unconfigured" }];
  await show(NewPayout, {
    path: "payouts/new",
    answers: {
      [`GET ${BASE}/wallet`]: { success: true, mode: "live", balances: [balance] },
      [`GET ${BASE}/wallet/coins`]: { success: true, coins },
    },
  });
  fireEvent.click(await screen.findByRole("combobox", { name: /Out of/ }));
  const option = () => screen.getByRole("option", { name: "USDT · polygon 3,000", hidden: true });
  await expect.poll(() => option().getAttribute("data-combobox-disabled"), { timeout: 20_000 }).toBe("true");
  fireEvent.click(option());
  expect(screen.queryByRole("textbox", { name: /^Amount/ })).toBeNull();
});
