import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, nothing, PROJECT, show } from "../../testing/render";

import { CoinsPage } from "./CoinsPage";
import type { Coin } from "./queries";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const USDT: Coin = {
  chain: "polygon",
  token: "USDT",
  contractAddress: null,
  decimals: 6,
  label: "Tether",
  availability: "live",
  enabled: true,
  autoConvertEnabled: false,
  autoConvertDestChain: null,
  autoConvertDestToken: null,
  autoConvertMinimumUsd: "1250",
  autoConvertWaitsFor: [],
  autopayoutPolicy: "off",
  autopayoutThreshold: null,
  autopayoutAddress: null,
  autopayoutMinimumUsd: "2500",
  autopayoutWaitsFor: [],
  minDeposit: null,
};
const coin = (token: string, chain: string, others: Partial<Coin> = {}): Coin => ({ ...USDT, token, chain, ...others });
const COINS = [coin("USDC", "base"), coin("TRX", "tron"), coin("DAI", "polygon", { enabled: false })];
const pair = (destToken: string, destChain: string) => ({ kind: "bridge", destChain, destToken });

/** Open the settings of a coin that can be exchanged for so much, and return the dialog with all that was sent. */
async function opened(pairs: readonly object[], others: Partial<Coin> = {}) {
  const bodies: unknown[] = [];
  await show(CoinsPage, {
    path: "coins",
    answers: {
      [`GET ${BASE}/wallet/coins`]: { success: true, version: 4, coins: [{ ...USDT, ...others }, ...COINS] },
      [`GET ${BASE}/swap-bridge/pairs`]: (request) => {
        expect(new URL(request.url).search).toBe("?srcChain=polygon&srcToken=USDT");
        return json({ success: true, pairs });
      },
      [`PATCH ${BASE}/wallet/coins/polygon/USDT/settings`]: async (request) => {
        bodies.push(await request.json());
        return json({ success: true, coin: USDT });
      },
      "GET /api/dashboard/approved-addresses": { ...nothing, approvedAddresses: [] },
      "GET /api/public/chains": { success: true, chains: [] },
    },
  });
  fireEvent.click(within(await screen.findByRole("row", { name: /^USDT/ })).getByRole("button", { name: "Change" }));
  return { dialog: within(await screen.findByRole("dialog")), bodies };
}

const offered = () => screen.getAllByRole("option", { hidden: true }).map(({ textContent }) => textContent);

it("offers what some provider exchanges the coin for, and is enabled", async () => {
  const { dialog, bodies } = await opened([pair("USDC", "base"), pair("DAI", "polygon")]);
  fireEvent.click(dialog.getByRole("switch", { name: /Convert what is available/ }));
  const save = dialog.getByRole<HTMLButtonElement>("button", { name: "Save" });
  expect(save.disabled).toBe(true);
  const field = await dialog.findByRole("combobox", { name: "Into" });
  fireEvent.click(field);
  await screen.findByRole("option", { name: "USDC · base", hidden: true });
  expect(offered()).toEqual(["USDC · base"]);
  fireEvent.click(screen.getByRole("option", { name: "USDC · base", hidden: true }));
  fireEvent.click(save);
  await expect
    .poll(() => bodies, { timeout: 20_000 })
    .toEqual([{ autoConvertEnabled: true, autoConvertDestChain: "base", autoConvertDestToken: "USDC" }]);
});

it.each([
  [[], "No provider exchanges this coin for another one."],
  [[pair("DAI", "polygon")], "You have disabled every coin that it could be exchanged for."],
])(
  "says plainly that there is nothing to convert into, and does not let it be switched on: %j",
  async (pairs, said) => {
    const { dialog } = await opened(pairs);
    expect(await dialog.findByText(said)).toBeTruthy();
    expect(dialog.getByRole<HTMLInputElement>("switch", { name: /Convert what is available/ }).disabled).toBe(true);
  },
);

it.each([
  ["tron", "TRX", [pair("USDC", "base")]],
  ["tron", "TRX", []],
  ["polygon", "DAI", [pair("USDC", "base"), pair("DAI", "polygon")]],
])(
  "shows what is set though it is not offered any more, says so, and lets it be switched off: %s %s",
  async (...set) => {
    const [chain, token, pairs] = set;
    const converting = { autoConvertEnabled: true, autoConvertDestChain: chain, autoConvertDestToken: token };
    const { dialog, bodies } = await opened(pairs, converting);
    const field = await dialog.findByRole<HTMLInputElement>("combobox", { name: "Into" });
    expect(field.value).toBe(`${token} · ${chain}`);
    expect(await dialog.findByText(/^It cannot be exchanged for this now/)).toBeTruthy();
    fireEvent.click(dialog.getByRole("switch", { name: /Convert what is available/ }));
    fireEvent.click(dialog.getByRole("button", { name: "Save" }));
    await expect.poll(() => bodies, { timeout: 20_000 }).toEqual([{ autoConvertEnabled: false }]);
  },
);
