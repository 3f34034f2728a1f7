import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { PROJECT, show } from "../../testing/render";
import { NewExchange } from "../exchanges/NewExchange";
import { NewPayout } from "../payouts/NewPayout";
import { NewWithdrawal } from "../withdrawals/NewWithdrawal";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const coin = { chain: "polygon", token: "EURX", contractAddress: "0x02", decimals: 6 };
const now = { ...coin, available: "12", pending: "0", held: "0" };
const answers = {
  [`GET ${BASE}/wallet`]: {
    success: true,
    mode: "live",
    balances: [now, { ...now, contractAddress: "0x01", available: "7" }],
  },
  [`GET ${BASE}/wallet/coins`]: {
    success: true,
    coins: [{ ...coin, label: "EURX", availability: "live", enabled: true }],
  },
  [`GET ${BASE}/swap-bridge/pairs`]: { success: true, pairs: [] },
};

it.each([
  ["payout", NewPayout],
  ["withdrawal", NewWithdrawal],
  ["exchange", NewExchange],
] as const)("of two balances of one symbol, a %s can be of that of the contract it stands for", async (name, Page) => {
  await show(Page, { path: `${name}s/new`, answers });
  const [from] = await screen.findAllByRole("combobox");
  if (from === undefined) throw new Error("nothing can be chosen");
  fireEvent.click(from);
  fireEvent.click(await screen.findByRole("option", { name: /EURX/, hidden: true }));
  await expect.poll(() => screen.queryByText(/^Available/)?.textContent).toContain("12 EURX");
});
