import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";

import { chooseLanguage } from "../../i18n";
import { json, one, showOperator } from "../../testing/render";

import { TokensPage } from "./TokensPage";

const TOKEN = {
  tokenId: "tok_1",
  chain: "ethereum",
  symbol: "EURX",
  decimals: 6,
  label: null,
  contractAddress: "0x52908400098527886E0F7030069857D2E4169EE7",
  origin: "added",
  state: "enabled",
  reason: null,
  defaultEnabled: true,
  sendable: false,
  sendableReason: "It is not in the signer's own file.",
  sendableReasonCode: "NOT_IN_SIGNERS_FILE",
  signerLines: null,
  sinceHeight: 1,
  changedAt: null,
};
const SHOPS = [
  { merchantId: "mrc_7", name: "Nordlicht", email: "ada@nordlicht.example" },
  { merchantId: "mrc_8", name: "Südwind", email: "bob@suedwind.example" },
];

afterEach(async () => {
  await chooseLanguage("en");
});

it.each([
  ["NOT_IN_SIGNERS_FILE", /Er steht noch nicht in der eigenen Datei des Signers/],
  ["SIGNER_NOT_ASKED", /Der Signer hat noch nicht gesagt/],
])("why nothing of a token leaves is said in the reader's language: %s", async (sendableReasonCode, sentence) => {
  await chooseLanguage("de");
  await showOperator(TokensPage, {
    path: "tokens",
    answers: { "GET /api/admin/tokens": { ...one, tokens: [{ ...TOKEN, sendableReasonCode, merchants: [] }] } },
  });
  expect(await screen.findByText(sentence)).toBeTruthy();
  expect(screen.queryByText(TOKEN.sendableReason)).toBeNull();
});

it("a token without a price says why, where it is in use, and leads to the prices", async () => {
  const sendable = { sendable: true, sendableReason: null, sendableReasonCode: null, merchants: [] };
  const tokens = [
    { ...TOKEN, ...sendable },
    { ...TOKEN, ...sendable, tokenId: "tok_2", symbol: "USDX" },
    { ...TOKEN, ...sendable, tokenId: "tok_3", symbol: "OLD", state: "disabled" },
  ];
  const none = { rate: null, source: null, refused: "No price.", spreadPercent: null, sources: [] };
  const prices = [
    { ...none, token: "EURX", refusedCode: "TOO_FEW" },
    { ...none, token: "USDX", refusedCode: null, rate: "1" },
    { ...none, token: "OLD", refusedCode: "NO_PRICE" },
  ];
  await showOperator(TokensPage, {
    path: "tokens",
    permissions: ["prices.read"],
    answers: { "GET /api/admin/tokens": { ...one, tokens }, "GET /api/admin/prices": { prices } },
  });
  const said = await screen.findByRole("link", { name: "Too few sources have a price" });
  expect(said.getAttribute("href")).toBe("/prices");
  expect(said.closest("tr")?.textContent).toContain("EURX");
  for (const symbol of ["USDX", "OLD"]) {
    expect(screen.getByRole("row", { name: new RegExp(symbol) }).textContent).not.toContain("price");
  }
});

it("a token is decided about for one merchant, who stands in the list from then on", async () => {
  const bodies: unknown[] = [];
  let merchants: readonly object[] = [{ merchantId: "mrc_8", name: "Südwind", enabled: false }];
  await showOperator(TokensPage, {
    path: "tokens",
    permissions: ["tokens.change", "chains.read", "merchants.read"],
    answers: {
      "GET /api/admin/chains": { chains: [{ chain: "ethereum", name: "Ethereum" }] },
      "GET /api/admin/tokens": () => json({ ...one, tokens: [{ ...TOKEN, merchants }] }),
      "GET /api/admin/merchants": { ...one, merchants: SHOPS },
      "PATCH /api/admin/tokens/ethereum/EURX": async (request) => {
        bodies.push(await request.json());
        merchants = [...merchants, { merchantId: "mrc_7", name: "Nordlicht", enabled: false }];
        return json({ success: true });
      },
    },
  });
  const row = await screen.findByRole("row", { name: /EURX/ });
  const apart = within(row).getByRole("list", { name: "Decided apart for some" });
  expect(apart.textContent).toBe("Südwind Off");
  expect(within(apart).getByRole("link", { name: "Südwind" })).toHaveProperty("href", expect.stringMatching(/mrc_8$/));
  expect(within(row).getByText(TOKEN.sendableReason).lang).toBe("en");

  fireEvent.click(within(row).getByRole("button", { name: "For one merchant" }));
  const dialog = await screen.findByRole("dialog");
  const act = within(dialog).getByRole("button", { name: "For one merchant" });
  expect(within(dialog).getByRole("button", { name: "Off" }).getAttribute("aria-pressed")).toBe("true");
  fireEvent.click(within(dialog).getByRole("combobox", { name: /Merchant/ }));
  fireEvent.click(await screen.findByRole("option", { name: /Nordlicht/, hidden: true }));
  fireEvent.click(act);
  await waitFor(() => {
    expect(screen.queryByRole("dialog")).toBeNull();
  });
  expect(bodies).toEqual([{ merchants: { mrc_7: false } }]);
  expect(await screen.findByText("Nordlicht")).toBeTruthy();
});

it("what the signer's file lacks of a token is shown to be copied, with what else its file has to say", async () => {
  const signerLines = '[[plugins.evm.chains.ethereum.tokens]]\nsymbol = "EURX"\n';
  const lacking = { ...TOKEN, signerLines, merchants: [] };
  const sendable = { sendable: true, sendableReason: null, sendableReasonCode: null };
  const whole = { ...TOKEN, ...sendable, tokenId: "tok_2", symbol: "USDX", merchants: [] };
  await showOperator(TokensPage, {
    path: "tokens",
    answers: { "GET /api/admin/tokens": { ...one, tokens: [lacking, whole] } },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Lines for the signer's file" }));
  const dialog = await screen.findByRole("dialog");
  expect(dialog.querySelector("pre")?.textContent).toBe(signerLines);
  expect(dialog.textContent).toContain('write "ethereum/EURX" with an amount into signer.hourly_caps');
  const writeText = vi.fn(() => Promise.resolve());
  // The page that is shown anew once it is copied asks the whole navigator.
  Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true, writable: true });
  fireEvent.click(within(dialog).getByRole("button", { name: /^Copy it/ }));
  expect(writeText).toHaveBeenCalledWith(signerLines);
  expect(await within(dialog).findByRole("button", { name: /^Copied/ })).toBeTruthy();
  Reflect.deleteProperty(navigator, "clipboard");
});

it("a merchant has a token again as all have it", async () => {
  const bodies: unknown[] = [];
  await showOperator(TokensPage, {
    path: "tokens",
    permissions: ["tokens.change"],
    answers: {
      "GET /api/admin/tokens": { ...one, tokens: [{ ...TOKEN, defaultEnabled: false, merchants: [] }] },
      "GET /api/admin/merchants": { ...one, merchants: SHOPS },
      "PATCH /api/admin/tokens/ethereum/EURX": async (request) => {
        bodies.push(await request.json());
        return json({ success: true });
      },
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "For one merchant" }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).getByRole("button", { name: "On" }).getAttribute("aria-pressed")).toBe("true");
  fireEvent.click(within(dialog).getByRole("combobox", { name: /Merchant/ }));
  fireEvent.click(await screen.findByRole("option", { name: /Südwind/, hidden: true }));
  fireEvent.click(within(dialog).getByRole("button", { name: "As for all" }));
  fireEvent.click(within(dialog).getByRole("button", { name: "For one merchant" }));
  await waitFor(() => {
    expect(bodies).toEqual([{ merchants: { mrc_8: null } }]);
  });
});

it("one that is added is looked for on its chain alone, and one that was refused is on for nobody", async () => {
  let asked: URLSearchParams | null = null;
  const refused = { ...TOKEN, symbol: null, state: "refused", reason: "It is no token.", merchants: [] };
  await showOperator(TokensPage, {
    path: "tokens",
    permissions: ["tokens.change", "chains.read"],
    answers: {
      "GET /api/admin/chains": {
        chains: [
          { chain: "ethereum", name: "Ethereum", availability: "live" },
          { chain: "base", name: "Base", availability: "simulated" },
        ],
      },
      "GET /api/admin/tokens": ({ url }) => {
        asked = new URL(url).searchParams;
        return json({ ...one, tokens: [refused] });
      },
      "POST /api/admin/tokens": () => json({ success: true }, 201),
    },
  });
  const row = await screen.findByRole("row", { name: /It is no token/ });
  expect(within(row).queryByText("All merchants")).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Add a token" }));
  const dialog = await screen.findByRole("dialog");
  const chains = within(dialog).getByRole("combobox", { name: /Chain/ });
  fireEvent.click(chains);
  const offered = () => [
    ...document.querySelectorAll(`[id="${chains.getAttribute("aria-controls") ?? ""}"] [role=option]`),
  ];
  await waitFor(() => {
    // Nothing can be looked up on a chain that is made up.
    expect(offered().map((option) => option.textContent)).toEqual(["Ethereum"]);
  });
  for (const option of offered()) fireEvent.click(option);
  fireEvent.change(within(dialog).getByRole("textbox", { name: /Contract/ }), { target: { value: "0xdac1" } });
  fireEvent.click(within(dialog).getByRole("button", { name: "Add a token" }));
  await waitFor(() => {
    expect(asked?.get("chain")).toBe("ethereum");
  });
});
