import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, nothing, PROJECT, show, type Answers } from "../../testing/render";

import { patchOf } from "./CoinSettings";
import { CoinsPage } from "./CoinsPage";
import type { Approved, Coin } from "./queries";

const BASE = `/api/dashboard/projects/${PROJECT}/wallet/coins`;
const APPROVED = "/api/dashboard/approved-addresses";
const ADDRESS = "0x5555555555555555555555555555555555555555";

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
  autopayoutPolicy: "limit",
  autopayoutThreshold: "1000",
  autopayoutAddress: ADDRESS,
  autopayoutMinimumUsd: "2500",
  autopayoutWaitsFor: [{ code: "BELOW_THRESHOLD", message: "Less than the threshold is available." }],
  minDeposit: null,
};
const USDC: Coin = { ...USDT, chain: "base", token: "USDC", label: "USD Coin", autopayoutPolicy: "off" };
const OWN: Approved = {
  approvalId: "apr_1",
  mode: "live",
  chain: "polygon",
  address: ADDRESS,
  label: "Our exchange",
  approvedAt: "2026-01-01T12:00:00.000Z",
};
const answers: Answers = {
  [`GET ${BASE}`]: { success: true, version: 4, coins: [USDT, USDC] },
  [`GET ${APPROVED}`]: { ...nothing, approvedAddresses: [OWN] },
  "GET /api/public/chains": { success: true, chains: [{ chain: "polygon", name: "Polygon" }] },
};

describe("the page of coins", () => {
  it("says what happens by itself, and why it does not just now", async () => {
    await show(CoinsPage, { path: "coins", answers });
    const row = await screen.findByRole("row", { name: /USDT/ });
    expect(within(row).getByText("Less than the threshold is available.")).toBeTruthy();
    expect(await screen.findByText("Our exchange")).toBeTruthy();
  });

  it("shows coins by a part of their name, and changes nothing for whoever may not", async () => {
    await show(CoinsPage, { path: "coins", at: "coins?coin=usd%20coin", answers, permissions: ["read"] });
    expect(await screen.findByRole("row", { name: /USDC/ })).toBeTruthy();
    expect(screen.queryByRole("row", { name: /USDT/ })).toBeNull();
    for (const act of ["Change", "Disable", "Approve an address", "Take back"]) {
      expect(screen.queryByRole("button", { name: act }), act).toBeNull();
    }
  });

  it("disables one coin, and leaves the others as they are", async () => {
    const bodies: unknown[] = [];
    await show(CoinsPage, {
      path: "coins",
      answers: {
        ...answers,
        [`PUT ${BASE}`]: async (request) => {
          bodies.push(await request.json());
          return json({ success: true, version: 5, coins: [] });
        },
      },
    });
    fireEvent.click(within(await screen.findByRole("row", { name: /USDT/ })).getByRole("button", { name: "Disable" }));
    const dialog = await screen.findByRole("dialog", { name: "Disable USDT · polygon?" });
    fireEvent.click(within(dialog).getByRole("button", { name: "Disable" }));
    await expect
      .poll(() => bodies, { timeout: 20_000 })
      .toEqual([{ version: 4, coins: [{ chain: "base", token: "USDC" }] }]);
  });

  it.each(["Change", "Disable"])("says to whoever has no second factor that it needs one: %s", async (act) => {
    await show(CoinsPage, { path: "coins", answers, member: { hasTwoFactor: false } });
    fireEvent.click(within(await screen.findByRole("row", { name: /USDT/ })).getByRole("button", { name: act }));
    const note = within(await screen.findByRole("dialog")).getByRole("note");
    expect(note.textContent).toContain("two-factor authentication");
  });

  it("says from how much on something happens by itself as the language writes it", async () => {
    await show(CoinsPage, { path: "coins", answers });
    fireEvent.click(within(await screen.findByRole("row", { name: /USDT/ })).getByRole("button", { name: "Change" }));
    const dialog = await screen.findByRole("dialog");
    for (const said of [/worth 1,250 US dollars/, /worth 2,500 US dollars/]) {
      expect(within(dialog).getByText(said)).toBeTruthy();
    }
  });

  it("approves an address with a code", async () => {
    const bodies: unknown[] = [];
    await show(CoinsPage, {
      path: "coins",
      answers: {
        ...answers,
        [`POST ${APPROVED}`]: async (request) => {
          bodies.push(await request.json());
          return json({ approvedAddress: OWN }, 201);
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Approve an address" }));
    const dialog = await screen.findByRole("dialog", { name: "Approve an address" });
    fireEvent.click(within(dialog).getByRole("combobox", { name: /Chain/ }));
    fireEvent.click(await screen.findByRole("option", { name: "Polygon", hidden: true }));
    fireEvent.change(within(dialog).getByLabelText(/^Address/), { target: { value: ADDRESS } });
    fireEvent.change(within(dialog).getByLabelText(/^Code/), { target: { value: "123456" } });
    fireEvent.click(within(dialog).getByRole("button", { name: "Approve" }));
    await expect
      .poll(() => bodies, { timeout: 20_000 })
      .toEqual([{ chain: "polygon", address: ADDRESS, label: "", mode: "live", totpCode: "123456" }]);
  });
});

describe("what is sent of a coin's settings", () => {
  const draft = {
    isConverting: false,
    target: null,
    isPayingOut: true,
    threshold: "1000",
    address: ADDRESS,
    minDeposit: "",
  };

  it("is what was changed, and nothing else", () => {
    expect(patchOf(USDT, draft, [USDT, USDC])).toEqual({});
    expect(patchOf(USDT, { ...draft, threshold: "", isPayingOut: false }, [])).toEqual({
      autopayoutPolicy: "off",
      autopayoutThreshold: null,
    });
    expect(patchOf(USDT, { ...draft, isConverting: true, target: "base/USDC" }, [USDT, USDC])).toEqual({
      autoConvertEnabled: true,
      autoConvertDestChain: "base",
      autoConvertDestToken: "USDC",
    });
  });
});
