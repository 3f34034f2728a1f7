import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { showOperator } from "../../testing/render";
import type { Schemas } from "../api";

import { PricesPage } from "./PricesPage";

const MOMENT = "2026-01-31T12:00:00.000Z";

function said(source: string, status: Schemas["PriceSeen"]["status"]): Schemas["PriceSeen"] {
  return { source, status, price: "1", observedAt: MOMENT, ageSeconds: 4 };
}

it("a source that is not believed says so itself, and of which coins and why", async () => {
  const source = (name: string, isSetAside = false) => ({ name, isSetAside, reason: null });
  const coin = (token: string, ...sources: Schemas["PriceSeen"][]) => ({
    token,
    rate: "1",
    source: "kraken",
    refused: null,
    refusedCode: null,
    spreadPercent: null,
    sources,
  });
  await showOperator(PricesPage, {
    path: "prices",
    answers: {
      "GET /api/admin/prices": {
        currency: "usd",
        sources: [source("kraken"), source("coingecko"), source("nearby"), source("static", true)],
        prices: [
          coin("ETH", said("kraken", "used"), said("coingecko", "too_far"), said("static", "set_aside")),
          coin("TRX", said("kraken", "used"), said("coingecko", "too_old")),
          coin("USDT", said("kraken", "used"), said("coingecko", "too_far")),
        ],
      },
    },
  });
  const table = await screen.findByRole("table", { name: "Sources" });
  const rows = within(table).getAllByRole("row").slice(1);
  const told = rows.map((row) => [...row.querySelectorAll("td > div")].slice(0, 3).map((cell) => cell.textContent));
  expect(told).toEqual([
    ["Kraken", "Asked", "–"],
    ["CoinGecko", "Not believed", "Too far from the others: ETH, USDTToo old: TRX"],
    ["nearby", "Says nothing", "–"],
    ["Fixed price static", "Set aside", "Set aside: ETH"],
  ]);
});

it.each([
  ["NO_PRICE", /No source has a price: .*\[plugins\.prices\.static\]/],
  ["DISAGREE", /The sources disagree: .*set that one aside/],
] as const)("a coin without a price says why, what that means, and what to do: %s", async (refusedCode, remedy) => {
  const priced = { token: "ETH", rate: "1", source: "kraken", refused: null, refusedCode: null };
  const coin = (token: string) => ({ token, rate: null, source: null, refused: "in English", refusedCode });
  const sources = [said("kraken", "used")];
  await showOperator(PricesPage, {
    path: "prices",
    answers: {
      "GET /api/admin/prices": {
        currency: "usd",
        sources: [],
        prices: [priced, coin("USDX"), coin("DAIX")].map((one) => ({ ...one, spreadPercent: null, sources })),
      },
    },
  });
  const part = await screen.findByRole("region", { name: "Coins without a price" });
  expect(part.textContent).toMatch(/Without a price: USDX, DAIX\. Payments in a currency are refused/);
  expect(within(part).getByRole("listitem").textContent).toMatch(remedy);
  const row = within(screen.getByRole("table", { name: "Prices" })).getByRole("row", { name: /USDX/ });
  expect(row.textContent).not.toContain("in English");
});

it("nothing is said of coins without a price while all have one", async () => {
  const coin = { token: "ETH", rate: "1", source: "median(coingecko,kraken)", refused: null, refusedCode: null };
  await showOperator(PricesPage, {
    path: "prices",
    answers: {
      "GET /api/admin/prices": {
        currency: "usd",
        sources: [],
        prices: [{ ...coin, spreadPercent: null, sources: [] }],
      },
    },
  });
  expect(await screen.findByText("Median of CoinGecko and Kraken")).toBeTruthy();
  expect(screen.queryByRole("region", { name: "Coins without a price" })).toBeNull();
});
