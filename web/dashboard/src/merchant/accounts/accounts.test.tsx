import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, one, PROJECT, refused, show, type Answers } from "../../testing/render";

import { AccountList } from "./AccountList";
import { AccountPage } from "./AccountPage";
import type { Account, AccountDeposit } from "./queries";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const LIST = `GET ${BASE}/accounts`;
const SHARED = "0x5555555555555555555555555555555555555555";
const ACCOUNT: Account = {
  accountId: "acc_1",
  externalId: "user-4711",
  addresses: [
    { chain: "base", address: SHARED },
    { chain: "ethereum", address: SHARED },
    { chain: "tron", address: "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf" },
  ],
  depositUrl: "https://pay.example.com/account/pub_1",
  isActive: true,
  metadata: { plan: "pro" },
  createdAt: "2026-01-01T12:00:00.000Z",
  updatedAt: "2026-01-01T12:00:00.000Z",
};
const DEPOSIT: AccountDeposit = {
  depositId: "dep_1",
  accountId: "acc_1",
  externalId: "user-4711",
  chain: "base",
  token: "USDC",
  contractAddress: null,
  decimals: 6,
  amount: "3",
  address: SHARED,
  fromAddress: null,
  txHash: "0xab",
  status: "confirmed",
  counted: false,
  heldAmount: "3",
  heldReason: "below_minimum",
  resolution: null,
  confirmations: 12,
  requiredConfirmations: 12,
  incarnation: 1,
  fiat: [],
  fiatReason: "pending",
  seenAt: "2026-01-01T12:00:00.000Z",
  minedAt: "2026-01-01T12:00:00.000Z",
  confirmedAt: null,
  orphanedAt: null,
};
const coin = (chain: string) => ({
  chain,
  token: "USDC",
  availability: chain === "ton" ? "simulated" : "live",
  enabled: true,
});
const PUBLIC: Answers = {
  "GET /api/public/chains": { success: true, chains: [{ chain: "base", name: "Base" }] },
  [`GET ${BASE}/wallet/coins`]: { success: true, coins: ["base", "ethereum", "tron", "polygon", "ton"].map(coin) },
};

describe("the list of accounts", () => {
  it("shows each address once, however many chains share it", async () => {
    await show(AccountList, { path: "accounts", answers: { [LIST]: { ...one, accounts: [ACCOUNT] } } });
    const row = await screen.findByRole("row", { name: /user-4711/ });
    expect(within(row).getAllByText(/^Copy 0x5555/)).toHaveLength(1);
    expect(within(row).getByText("base, ethereum, tron")).toBeTruthy();
  });

  it("says of an end user whom nobody knows that there is no account", async () => {
    const answers = { [LIST]: () => refused(404, "ACCOUNT_NOT_FOUND") };
    await show(AccountList, { path: "accounts", at: "accounts?externalId=nobody", answers });
    expect(await screen.findByText("No account is like that")).toBeTruthy();
  });

  it("makes one on the chains that are chosen", async () => {
    const bodies: unknown[] = [];
    await show(AccountList, {
      path: "accounts",
      answers: {
        ...PUBLIC,
        [LIST]: { ...one, accounts: [ACCOUNT] },
        [`POST ${BASE}/accounts`]: async (request) => {
          bodies.push(await request.json());
          return json({ account: ACCOUNT }, 201);
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "New account" }));
    const dialog = await screen.findByRole("dialog", { name: "New account" });
    fireEvent.change(within(dialog).getByLabelText(/^End user/), { target: { value: "user-4711" } });
    expect(within(dialog).getByRole<HTMLButtonElement>("button", { name: "Make the account" }).disabled).toBe(true);
    expect(within(dialog).getByRole("group", { name: "Chains", description: /^Choose at least one/ })).toBeTruthy();
    fireEvent.click(await within(dialog).findByLabelText("Base"));
    fireEvent.click(within(dialog).getByLabelText("tron"));
    expect(within(dialog).queryByLabelText("ton")).toBeNull();
    fireEvent.click(within(dialog).getByRole("button", { name: "Make the account" }));
    expect(await screen.findByText("elsewhere")).toBeTruthy();
    expect(bodies).toEqual([{ externalId: "user-4711", chains: ["base", "tron"] }]);
  });
});

describe("making an account", () => {
  it.each([
    ["ton", "live", /^No chain is connected/],
    ["ton", "sandbox", null],
    ["base", "live", null],
  ] as const)("says where there is no chain to choose, and what to do: %s, %s", async (chain, mode, said) => {
    await show(AccountList, {
      path: "accounts",
      mode,
      answers: { ...PUBLIC, [`GET ${BASE}/wallet/coins`]: { coins: [coin(chain)] }, [LIST]: { ...one, accounts: [] } },
    });
    const [open] = await screen.findAllByRole("button", { name: "New account" });
    if (open !== undefined) fireEvent.click(open);
    const dialog = within(await screen.findByRole("dialog", { name: "New account" }));
    if (said === null) {
      expect(await dialog.findByRole("checkbox")).toBeTruthy();
      expect(dialog.queryByText(/operator/)).toBeNull();
      return;
    }
    expect(await dialog.findByText(said)).toBeTruthy();
    expect(dialog.getByText(/ask for one.*sandbox project/)).toBeTruthy();
    expect(dialog.queryByRole("textbox")).toBeNull();
    expect(dialog.getByRole<HTMLButtonElement>("button", { name: "Make the account" }).disabled).toBe(true);
  });

  it("says why the chains do not come, and asks for them again", async () => {
    let times = 0;
    const answers = {
      ...PUBLIC,
      [LIST]: { ...one, accounts: [ACCOUNT] },
      [`GET ${BASE}/wallet/coins`]: () => {
        times += 1;
        return times === 1 ? refused(409, "SOMETHING_WRONG") : json({ coins: [coin("base")] });
      },
    };
    await show(AccountList, { path: "accounts", answers });
    fireEvent.click(await screen.findByRole("button", { name: "New account" }));
    const dialog = within(await screen.findByRole("dialog", { name: "New account" }));
    expect(await dialog.findByText("SOMETHING_WRONG")).toBeTruthy();
    fireEvent.click(dialog.getByRole("button", { name: "Try again" }));
    expect(await dialog.findByRole("checkbox", { name: "Base" })).toBeTruthy();
  });
});

describe("the page of one account", () => {
  const at = { path: "accounts/$accountId", at: "accounts/acc_1" };
  const account = `${LIST}/acc_1`;
  const worth = (currency: string, amount: string) => ({ currency, amount, price: "1", source: "static" });
  const balance = { chain: "base", token: "USDC", contractAddress: null, decimals: 6, pending: "20", deposits: 4 };
  const answers: Answers = {
    ...PUBLIC,
    [account]: { account: ACCOUNT },
    [`${account}/balances`]: { success: true, balances: [{ ...balance, balance: "250", held: "3" }] },
    [`${account}/deposits`]: { ...one, deposits: [DEPOSIT] },
  };

  it("says what a deposit was worth in the currency of the wallet's statement, where that is known", async () => {
    const known = { ...DEPOSIT, fiat: [worth("eur", "2.76"), worth("usd", "3.01")] };
    await show(AccountPage, { ...at, answers: { ...answers, [`${account}/deposits`]: { ...one, deposits: [known] } } });
    expect(await screen.findByText("$3.01")).toBeTruthy();
    expect(screen.queryByText(/2\.76/)).toBeNull();
  });

  it("shows addresses by family, what is held and why, and what was sent in all", async () => {
    await show(AccountPage, { ...at, answers });
    const addresses = await screen.findByRole("region", { name: "Addresses" });
    expect(within(addresses).getAllByRole("button", { name: "QR code" })).toHaveLength(2);
    expect(within(addresses).getByText("base, ethereum")).toBeTruthy();
    expect(await screen.findByText("held · Below the minimum")).toBeTruthy();
    const balances = await screen.findByRole("table", { name: "What they sent" });
    expect(within(balances).getByText("250")).toBeTruthy();
  });

  it("says what was decided about a deposit that was held", async () => {
    const resolution = {
      ...DEPOSIT,
      reason: "below_minimum",
      resolution: "released",
      resolvedAt: "2026-01-02T12:00:00.000Z",
    };
    await show(AccountPage, {
      ...at,
      answers: {
        ...answers,
        [`${account}/deposits`]: { ...one, deposits: [{ ...DEPOSIT, resolution: "released" }] },
        [`GET ${BASE}/resolutions/dep_1`]: { success: true, resolution },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Decision" }));
    const dialog = within(await screen.findByRole("dialog", { name: "Decision" }));
    expect(await dialog.findByText("Released")).toBeTruthy();
    expect(dialog.getByText(/^Jan 2, 2026/)).toBeTruthy();
    expect(dialog.getByText("Below the minimum")).toBeTruthy();
  });

  it("keeps the rest where one part fails", async () => {
    await show(AccountPage, { ...at, answers: { ...answers, [`${account}/balances`]: () => refused(422, "BROKEN") } });
    expect(await screen.findByText("BROKEN")).toBeTruthy();
    expect(screen.getByRole("region", { name: "Addresses" })).toBeTruthy();
  });

  it("offers no chains to be added where it has all", async () => {
    const coins = { success: true, coins: ["base", "ethereum", "tron", "ton"].map(coin) };
    const sent = await show(AccountPage, { ...at, answers: { ...answers, [`GET ${BASE}/wallet/coins`]: coins } });
    await expect.poll(() => sent.some(({ url }) => url.endsWith("/wallet/coins")), { timeout: 20_000 }).toBe(true);
    expect(await screen.findByRole("button", { name: "Switch off" })).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Add chains" })).toBeNull();
  });

  it("adds only chains that it lacks, and is switched off", async () => {
    const sent: string[] = [];
    const note = async (request: Request) => {
      sent.push(`${new URL(request.url).pathname.split("/").at(-1) ?? ""} ${await request.text()}`);
      return json({ account: ACCOUNT });
    };
    const acts = { [`POST ${BASE}/accounts/acc_1/chains`]: note, [`POST ${BASE}/accounts/acc_1/deactivate`]: note };
    await show(AccountPage, { ...at, answers: { ...answers, ...acts } });
    fireEvent.click(await screen.findByRole("button", { name: "Add chains" }));
    const chains = await screen.findByRole("dialog", { name: "Add chains" });
    fireEvent.click(await within(chains).findByLabelText("polygon"));
    expect(within(chains).queryByLabelText("Base")).toBeNull();
    fireEvent.click(within(chains).getByRole("button", { name: "Add" }));
    await expect.poll(() => sent, { timeout: 20_000 }).toEqual(['chains {"chains":["polygon"]}']);
    await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: "Switch off" }));
    const off = await screen.findByRole("dialog", { name: "Switch this account off?" });
    fireEvent.click(within(off).getByRole("button", { name: "Switch off" }));
    await expect.poll(() => sent.length, { timeout: 20_000 }).toBe(2);
  });
});
