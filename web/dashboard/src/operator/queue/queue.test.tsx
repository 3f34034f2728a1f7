import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { chooseLanguage } from "../../i18n";
import { DESCRIBED } from "../../testing/described";
import { json, nothing, one, showOperator } from "../../testing/render";

import { IntentPage } from "./IntentPage";
import { QueuePage } from "./QueuePage";

const INTENT = {
  intentId: "int_1",
  kind: "payout",
  state: "cancelling",
  mode: "live",
  chain: "ethereum",
  merchantId: "mer_1",
  merchantName: "Nordlicht",
  payoutId: "po_1",
  txnId: null,
  token: "USDT",
  contractAddress: null,
  amount: "5",
  fromAddress: "0x52908400098527886E0F7030069857D2E4169EE7",
  toAddress: "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
  toTag: null,
  askedBy: "key",
  ageSeconds: 60,
  waitsFor: { code: "signed_before", text: "The signer has signed it before.", until: null },
  behind: null,
  nonce: null,
  transactions: [],
  feeRaise: null,
  settlement: { nonce: 17, signedTxHash: null, txHash: null, askedAt: null, refusal: null, refusalCode: null },
  cancelAskedAt: "2026-01-01T12:00:00.000Z",
  createdAt: "2026-01-01T12:00:00.000Z",
  updatedAt: "2026-01-01T12:00:00.000Z",
};

it("what may have been sent is ended by the transaction that an owner names, and says why it is not", async () => {
  const bodies: unknown[] = [];
  let now = INTENT;
  await showOperator(IntentPage, {
    path: "queue/$intentId",
    at: "queue/int_1",
    permissions: ["outbound.read", "outbound.change", "outbound.settle"],
    answers: {
      "GET /api/admin/outbound/int_1": () => json({ success: true, outbound: now }),
      "POST /api/admin/outbound/int_1/settle": async (request) => {
        bodies.push(await request.json());
        const settlement = { ...INTENT.settlement, txHash: "0xab", refusal: "It has the nonce 3." };
        now = { ...INTENT, settlement } as never;
        return json({ success: true, outbound: now });
      },
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Name its transaction" }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).getByText("17")).toBeTruthy();
  fireEvent.change(within(dialog).getByLabelText(/^Transaction/), { target: { value: " 0xab " } });
  fireEvent.click(within(dialog).getByRole("button", { name: "Name its transaction" }));
  await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
  expect(bodies).toEqual([{ txHash: "0xab" }]);
  expect(await screen.findByText("It has the nonce 3.")).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Cancel" })).toBeNull();
});

it("nobody but an owner is offered to name one", async () => {
  await showOperator(IntentPage, {
    path: "queue/$intentId",
    at: "queue/int_1",
    permissions: ["outbound.read", "outbound.change"],
    answers: { "GET /api/admin/outbound/int_1": { success: true, outbound: INTENT } },
  });
  expect(await screen.findByText("The signer has signed it before.")).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Name its transaction" })).toBeNull();
});

it("a fee is in the coin of its chain, which its gas station tells", async () => {
  const transaction = {
    txHash: "0xab",
    role: "transfer",
    state: "sent",
    nonce: 3,
    maxFee: "0.002",
    fee: null,
    height: null,
    tries: 1,
    createdAt: "2026-01-01T12:00:00.000Z",
    sentAt: null,
    triedAt: null,
  };
  const { chains } = DESCRIBED.operator.example("/api/admin/chains") as { readonly chains: readonly [object] };
  const gasStation = { chain: "ethereum", address: "0x1", symbol: "ETH", balance: null, isLow: null, waiting: 0 };
  await showOperator(IntentPage, {
    path: "queue/$intentId",
    at: "queue/int_1",
    permissions: ["outbound.read", "chains.read"],
    answers: {
      "GET /api/admin/outbound/int_1": { success: true, outbound: { ...INTENT, transactions: [transaction] } },
      "GET /api/admin/chains": { success: true, chains: [{ ...chains[0], chain: "ethereum", gasStation }] },
    },
  });
  expect(await screen.findByText("0.002")).toBeTruthy();
  expect(await screen.findByText("ETH")).toBeTruthy();
});

it("is filtered by what is waited for, by merchant and by age", async () => {
  const sent = await showOperator(QueuePage, {
    path: "queue",
    answers: {
      "GET /api/admin/outbound": { ...nothing, outbound: [] },
      "GET /api/admin/merchants": {
        ...one,
        merchants: [{ merchantId: "mrc_7", name: "Nordlicht", email: "a@b.example" }],
      },
    },
  });
  await screen.findByText("Nothing waits to be sent");
  for (const [field, chosen] of [
    ["Waits for", "Signer: hourly cap"],
    ["Merchant", /Nordlicht/],
    ["Age", "Older than 6 hours"],
  ] as const) {
    fireEvent.click(screen.getByRole("combobox", { name: field }));
    fireEvent.click(await screen.findByRole("option", { name: chosen, hidden: true }));
  }
  await expect
    .poll(() => Object.fromEntries(new URL(sent.at(-1)?.url ?? location.href).searchParams), { timeout: 20_000 })
    .toEqual({ limit: "25", page: "1", reason: "signer: HOURLY_CAP", merchantId: "mrc_7", olderThanMinutes: "360" });
});

it("why a wish is not met is said in the reader's language, with the API's own words beside it", async () => {
  const refusal = "It has the nonce 3, and what was signed has the nonce 17.";
  const settlement = { ...INTENT.settlement, refusal, refusalCode: "OTHER_NONCE" };
  await chooseLanguage("de");
  try {
    await showOperator(IntentPage, {
      path: "queue/$intentId",
      at: "queue/int_1",
      answers: { "GET /api/admin/outbound/int_1": { success: true, outbound: { ...INTENT, settlement } } },
    });
    expect(await screen.findByText(/eine andere Nonce als das/)).toBeTruthy();
    expect(screen.getByText(refusal).lang).toBe("en");
  } finally {
    await chooseLanguage("en");
  }
});

it.each([
  ["waiting", "What it waits for", true],
  ["failed", "What came of it", false],
  ["done", "What came of it", false],
])("what has ended waits for nothing, and is behind nothing: %s", async (state, title, isBehind) => {
  const outbound = { ...INTENT, state, waitsFor: null, behind: "int_2", settlement: null };
  await showOperator(IntentPage, {
    path: "queue/$intentId",
    at: "queue/int_1",
    answers: { "GET /api/admin/outbound/int_1": { success: true, outbound } },
  });
  const part = await screen.findByRole("region", { name: title });
  expect(within(part).queryByText("int_2") !== null).toBe(isBehind);
});

it.each([
  ["failed", "Cancelled", "Nothing was signed"],
  ["cancelling", "Cancelling", "Nothing has been signed yet"],
])("what somebody has cancelled did not fail, and nothing more is signed for it: %s", async (state, chip, none) => {
  const outbound = { ...INTENT, state, waitsFor: null, settlement: null };
  await showOperator(IntentPage, {
    path: "queue/$intentId",
    at: "queue/int_1",
    answers: { "GET /api/admin/outbound/int_1": { success: true, outbound } },
  });
  expect(await screen.findByText(chip)).toBeTruthy();
  expect(screen.getByText(none)).toBeTruthy();
  expect(screen.queryByText("Failed")).toBeNull();
});

it.each([
  ["failed", "payout", true],
  ["failed", "withdrawal", true],
  ["failed", "refund", false],
  ["failed", "swap", false],
  ["done", "payout", false],
])("what became of a merchant's money is said where nothing was sent: %s %s", async (state, kind, isBack) => {
  const outbound = { ...INTENT, state, kind, waitsFor: null, settlement: null };
  await showOperator(IntentPage, {
    path: "queue/$intentId",
    at: "queue/int_1",
    answers: { "GET /api/admin/outbound/int_1": { success: true, outbound } },
  });
  expect(await screen.findByText("What came of it")).toBeTruthy();
  expect(screen.queryByText("Back in the merchant's balance") !== null).toBe(isBack);
});

it.each([
  ["signer: APPROVAL_NEEDED", "Looked at next", ["Signer"]],
  ["token_not_sendable", "Looked at next", ["Tokens"]],
  ["nonce_doubted", "Looked at next", ["Chains"]],
  ["signer: HOURLY_CAP", "Until", []],
])("what waits for a person leads to where somebody agrees, and for no moment: %s", async (code, label, links) => {
  const waitsFor = { code, text: "It waits.", until: "2026-01-01T12:00:00.000Z" };
  await showOperator(IntentPage, {
    path: "queue/$intentId",
    at: "queue/int_1",
    permissions: ["outbound.read", "signer.read", "chains.read"],
    answers: {
      "GET /api/admin/outbound/int_1": { success: true, outbound: { ...INTENT, state: "waiting", waitsFor } },
    },
  });
  const part = await screen.findByRole("region", { name: "What it waits for" });
  expect(within(part).getByText(label)).toBeTruthy();
  expect(
    within(part)
      .queryAllByRole("link")
      .map((link) => link.textContent),
  ).toEqual(links);
});

it("what a transaction may cost is shown whole to whoever is to name more", async () => {
  const transaction = {
    txHash: "0xab",
    role: "transfer",
    state: "sent",
    nonce: 3,
    maxFee: "0.000021000000000294",
    fee: null,
    height: null,
    tries: 1,
    createdAt: "2026-01-01T12:00:00.000Z",
    sentAt: null,
    triedAt: null,
  };
  const outbound = { ...INTENT, state: "sending", settlement: null, cancelAskedAt: null, transactions: [transaction] };
  await showOperator(IntentPage, {
    path: "queue/$intentId",
    at: "queue/int_1",
    permissions: ["outbound.read", "outbound.change"],
    answers: { "GET /api/admin/outbound/int_1": { success: true, outbound } },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Raise the fee" }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).getByText("0.000021000000000294")).toBeTruthy();
});
