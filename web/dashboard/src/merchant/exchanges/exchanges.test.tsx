import { cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";

import { json, nothing, one, PROJECT, show, type Answers } from "../../testing/render";

import { ExchangeList } from "./ExchangeList";
import { ExchangePage } from "./ExchangePage";
import { NewExchange } from "./NewExchange";
import type { Exchange } from "./queries";
import { QUOTE_LIFE_MS } from "./quoting";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const HISTORY = `GET ${BASE}/swap-bridge/history`;
const coin = (chain: string, token: string, enabled = true) => ({
  chain,
  token,
  decimals: 6,
  label: token,
  availability: chain === "ton" ? "simulated" : "live",
  enabled,
});
const PUBLIC: Answers = {
  "GET /api/public/chains": {
    success: true,
    chains: [
      { chain: "polygon", name: "Polygon" },
      { chain: "base", name: "Base" },
    ],
  },
  [`GET ${BASE}/wallet/coins`]: {
    success: true,
    coins: [
      ...[coin("base", "USDC"), coin("polygon", "USDT"), coin("polygon", "USDC")],
      ...[coin("base", "DAI", false), coin("ton", "USDC")],
    ],
  },
  [`GET ${BASE}/swap-bridge/pairs`]: {
    success: true,
    pairs: [
      { kind: "bridge", destChain: "base", destToken: "DAI" },
      { kind: "bridge", destChain: "base", destToken: "USDC" },
    ],
  },
};

const EXCHANGE: Exchange = {
  txnId: "xch_1",
  kind: "bridge",
  mode: "manual",
  status: "pending",
  provider: "across",
  sourceChain: "polygon",
  sourceToken: "USDT",
  sourceAmount: "25",
  destChain: "base",
  destToken: "USDC",
  destAmount: null,
  destAmountMin: "24.7203",
  slippagePercent: 1,
  recipient: "0x5555555555555555555555555555555555555555",
  txHash: null,
  destTxHash: null,
  payoutId: null,
  waitsFor: "gas",
  waitsForText: "gas on Polygon",
  error: null,
  errorCode: null,
  createdAt: "2026-01-01T12:00:00.000Z",
  updatedAt: "2026-01-01T12:00:00.000Z",
  completedAt: null,
};

describe("the list of swaps and bridges", () => {
  it("shows how little may come until it has come", async () => {
    await show(ExchangeList, {
      path: "exchanges",
      answers: { ...PUBLIC, [HISTORY]: { ...one, exchanges: [EXCHANGE] } },
    });
    const row = await screen.findByRole("row", { name: /Bridge/ });
    expect(within(row).getByText(/at least/).textContent).toContain("24.7203");
    expect(within(row).getByRole("link").getAttribute("href")).toBe(`/${PROJECT}/exchanges/xch_1`);
  });

  it("sends on what its address filters by, and says where nothing is like that", async () => {
    const sent = await show(ExchangeList, {
      path: "exchanges",
      at: "exchanges?status=failed&kind=comet",
      answers: { ...PUBLIC, [HISTORY]: { ...nothing, exchanges: [] } },
    });
    expect(await screen.findByText("No swap or bridge is like that")).toBeTruthy();
    const asked = new URL(sent.find((request) => request.url.includes("/history"))?.url ?? "").searchParams;
    expect([asked.get("status"), asked.get("kind")]).toEqual(["failed", null]);
  });

  it("offers no new one to whoever may not exchange", async () => {
    const answers = { ...PUBLIC, [HISTORY]: { ...nothing, exchanges: [] } };
    await show(ExchangeList, { path: "exchanges", answers, permissions: ["read"] });
    expect(await screen.findByText("No swaps or bridges yet")).toBeTruthy();
    expect(screen.queryByRole("link", { name: "New swap or bridge" })).toBeNull();
  });
});

describe("the page of one exchange", () => {
  const asks = `${HISTORY}/xch_1`;

  it("says what it waits for, and what came with its rate", async () => {
    const at = { path: "exchanges/$txnId", at: "exchanges/xch_1" };
    const events = { [`GET ${BASE}/events`]: { ...nothing, events: [] } };
    await show(ExchangePage, { ...at, answers: { ...events, [asks]: { exchange: EXCHANGE } } });
    expect(await screen.findByText("gas on Polygon")).toBeTruthy();
    cleanup();
    const done = { ...EXCHANGE, status: "succeeded", destAmount: "24.95", waitsFor: null, waitsForText: null };
    await show(ExchangePage, { ...at, answers: { ...events, [asks]: { exchange: done } } });
    expect(await screen.findByText("1 USDT = 0.998 USDC")).toBeTruthy();
    expect(screen.queryByRole("link", { name: "Back in your balance" })).toBeNull();
    cleanup();
    const failed = { ...EXCHANGE, status: "failed", error: "It could not be sent.", errorCode: "NOT_SENT" };
    await show(ExchangePage, { ...at, answers: { ...events, [asks]: { exchange: failed } } });
    expect(await screen.findByRole("link", { name: "Back in your balance" })).toBeTruthy();
  });
});

describe("a new exchange", () => {
  const balance = {
    chain: "polygon",
    token: "USDT",
    contractAddress: null,
    decimals: 6,
    available: "30",
    pending: "0",
  };
  const wallet = `GET ${BASE}/wallet`;
  const answers: Answers = {
    ...PUBLIC,
    [wallet]: { success: true, mode: "live", balances: [{ ...balance, held: "0" }] },
    [`GET ${BASE}/swap-bridge/platform-fees`]: { success: true, defaultSlippage: 1 },
    [`POST ${BASE}/swap-bridge/bridge/quote`]: {
      success: true,
      quote: {
        provider: "across",
        srcChain: "polygon",
        srcToken: "USDT",
        srcAmount: "25",
        destChain: "base",
        destToken: "USDC",
        dstAmount: "24.97",
        slippagePercent: 1,
        platformFee: { amount: "0.01", token: "USDT" },
        fees: [{ name: "relayer", amount: "0.02", token: "USDT" }],
        fillDeadline: "2026-01-01T13:00:00.000Z",
        estimatedFillSeconds: 4,
      },
    },
  };
  afterEach(() => {
    vi.useRealTimers();
  });

  async function quoted(more: Answers = {}): Promise<readonly Request[]> {
    const sent = await show(NewExchange, { path: "exchanges/new", answers: { ...answers, ...more } });
    fireEvent.change(await screen.findByLabelText(/^Amount/), { target: { value: "25" } });
    fireEvent.click(screen.getByRole("combobox", { name: /You get/ }));
    const target = await screen.findByRole("option", { name: "USDC · base", hidden: true });
    expect(screen.queryByRole("option", { name: /DAI|ton|USDC · polygon/, hidden: true })).toBeNull();
    fireEvent.click(target);
    fireEvent.click(screen.getByRole("button", { name: "Get a quote" }));
    await screen.findByRole("region", { name: "Quote" });
    return sent;
  }

  it("quotes in smallest units, and executes what was quoted, once", async () => {
    const execute = `POST ${BASE}/swap-bridge/bridge/execute`;
    const bodies: unknown[] = [];
    await quoted({
      [execute]: async (request) => {
        bodies.push(await request.json());
        return json({ success: true, txnId: "xch_1", quote: {}, exchange: EXCHANGE });
      },
    });
    expect(screen.getByText("1 USDT = 0.9988 USDC")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Bridge" }));
    const dialog = await screen.findByRole("dialog", { name: "Bridge this?" });
    fireEvent.click(within(dialog).getByRole("button", { name: "Bridge" }));
    expect(await screen.findByText("elsewhere")).toBeTruthy();
    expect(bodies).toMatchObject([
      {
        srcChain: "polygon",
        srcToken: "USDT",
        srcAmountRaw: "25000000",
        destChain: "base",
        destToken: "USDC",
        slippage: 1,
      },
    ]);
    expect(bodies[0]).toHaveProperty("idempotencyKey", expect.stringMatching(/^[\da-f-]{36}$/));
  });

  it("asks under the same key after a new quote, of the same order or another one, as an answer may have been lost", async () => {
    const keys: unknown[] = [];
    await quoted({
      [`POST ${BASE}/swap-bridge/bridge/execute`]: async (request) => {
        keys.push(((await request.json()) as { idempotencyKey: unknown }).idempotencyKey);
        return json({ success: false, error: "It broke off.", code: "UNAVAILABLE" }, 503);
      },
    });
    for (const round of [0, 1, 2]) {
      if (round === 2) fireEvent.change(screen.getByLabelText(/^Amount/), { target: { value: "24" } });
      if (round > 0) {
        fireEvent.click(screen.getByRole("button", { name: /new quote|Get a quote/ }));
        await waitFor(() => screen.getByRole("button", { name: "Bridge" }));
      }
      fireEvent.click(screen.getByRole("button", { name: "Bridge" }));
      const dialog = await screen.findByRole("dialog", { name: "Bridge this?" });
      fireEvent.click(within(dialog).getByRole("button", { name: "Bridge" }));
      await within(dialog).findByText("UNAVAILABLE");
      fireEvent.click(within(dialog).getByRole("button", { name: "Cancel" }));
      await waitFor(() => {
        expect(screen.queryByRole("dialog")).toBeNull();
      });
    }
    expect(new Set(keys).size).toBe(1);
  });

  it("lets nobody take a quote that is old, also in the dialog", async () => {
    await quoted();
    fireEvent.click(screen.getByRole("button", { name: "Bridge" }));
    const dialog = await screen.findByRole("dialog", { name: "Bridge this?" });
    const confirm = within(dialog).getByRole<HTMLButtonElement>("button", { name: "Bridge" });
    expect(confirm.disabled).toBe(false);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + QUOTE_LIFE_MS });
    expect(await screen.findByText("This quote is old")).toBeTruthy();
    expect(confirm.disabled).toBe(true);
    fireEvent.click(within(dialog).getByRole("button", { name: "Cancel" }));
    expect(screen.queryByRole("button", { name: "Bridge" })).toBeNull();
  });

  it("says where no provider exchanges what is given", async () => {
    const pairs = { success: true, pairs: [] };
    const sent = await show(NewExchange, {
      path: "exchanges/new",
      answers: { ...answers, [`GET ${BASE}/swap-bridge/pairs`]: pairs },
    });
    expect(await screen.findByText("No provider exchanges this coin for another one.")).toBeTruthy();
    const asked = sent.map(({ url }) => new URL(url)).find(({ pathname }) => pathname.endsWith("/pairs"));
    expect(asked?.search).toBe("?srcChain=polygon&srcToken=USDT");
  });

  it("says where every coin that it could become is disabled", async () => {
    const coins = [
      { chain: "polygon", token: "WETH", enabled: false },
      { chain: "polygon", token: "USDT", enabled: true },
    ];
    const pairs = { success: true, pairs: [{ kind: "swap", destChain: "polygon", destToken: "WETH" }] };
    await show(NewExchange, {
      path: "exchanges/new",
      answers: {
        ...answers,
        [`GET ${BASE}/swap-bridge/pairs`]: pairs,
        [`GET ${BASE}/wallet/coins`]: { success: true, coins },
      },
    });
    expect(await screen.findByText("You have disabled every coin that it could be exchanged for.")).toBeTruthy();
  });

  it("is of no coin while another one is typed", async () => {
    const sent = await quoted();
    const asked = sent.length;
    const field = screen.getByRole<HTMLInputElement>("combobox", { name: /You get/ });
    fireEvent.click(field);
    fireEvent.change(field, { target: { value: "USDX" } });
    expect(fireEvent.keyDown(field, { key: "Enter", code: "Enter" })).toBe(false);
    const ask = screen.getByRole<HTMLButtonElement>("button", { name: "Get a quote" });
    expect([field.value, ask.disabled]).toEqual(["USDX", true]);
    fireEvent.click(ask);
    expect(sent.slice(asked).filter(({ method }) => method !== "GET")).toEqual([]);
  });

  it("forgets a quote when anything of it is changed", async () => {
    await quoted();
    fireEvent.change(screen.getByLabelText(/^Amount/), { target: { value: "26" } });
    expect(screen.queryByRole("region", { name: "Quote" })).toBeNull();
  });
});

it("whoever has no second factor is told that a swap needs one, before anything is chosen", async () => {
  await show(NewExchange, { path: "exchanges/new", answers: PUBLIC, member: { hasTwoFactor: false } });
  const note = await screen.findByRole("note");
  expect(note.textContent).toContain("two-factor authentication");
  const href = within(note).getByRole("link").getAttribute("href");
  expect(href).toBe(`/${PROJECT}/security?next=%2F${PROJECT}%2Fexchanges%2Fnew`);
});
