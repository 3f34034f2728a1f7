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
    ["kraken", "Asked", "–"],
    ["coingecko", "Not believed", "Too far from the others: ETH, USDTToo old: TRX"],
    ["nearby", "Says nothing", "–"],
    ["static", "Set aside", "Set aside: ETH"],
  ]);
});
