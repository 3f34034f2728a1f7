import { expect, it } from "vitest";

import { DESCRIBED } from "../../testing/described";

import type { Settings } from "./fields";
import { errorsOf, opened, TABLES, type Table } from "./tables";

const EXAMPLE = DESCRIBED.operator.example("/api/admin/settings") as Settings;
const FULL: Settings = {
  ...EXAMPLE,
  limits: { "ethereum/USDT": { minimum: "5", perDay: "50000" }, "tron/USDT": {} },
  allowedAddresses: { ethereum: ["0x1", "0x2"], tron: ["T1"], polygon: [] },
  nativeGasMax: { prj_1: 300000 },
  exchanges: { ...EXAMPLE.exchanges, leastRates: { "ethereum/USDT>tron/USDT": "0.99" }, providers: { oneinch: false } },
  cpt: {
    ...EXAMPLE.cpt,
    weights: { ...EXAMPLE.cpt.weights, chains: { default: { payment: 10, payout: 0 }, ethereum: { payout: 900 } } },
    tiers: [
      { name: "Starter", minCpt: 0, maxCpt: 10, pricePer10kUsd: "1.00" },
      { name: "Scale", minCpt: 11, maxCpt: null, pricePer10kUsd: "0.60" },
    ],
    packs: [{ name: "100k", cpt: 100000, priceUsd: "10.00" }],
  },
};

const SENT: Readonly<Record<(typeof TABLES)[number]["name"], object>> = {
  limits: { limits: FULL.limits },
  allowedAddresses: { allowedAddresses: FULL.allowedAddresses },
  nativeGasMax: { nativeGasMax: FULL.nativeGasMax },
  leastRates: { exchanges: { leastRates: FULL.exchanges.leastRates } },
  providers: { exchanges: { providers: FULL.exchanges.providers } },
  weights: { cpt: { weights: { chains: FULL.cpt.weights.chains } } },
  tiers: { cpt: { tiers: FULL.cpt.tiers } },
  packs: { cpt: { packs: FULL.cpt.packs } },
};

it.each(TABLES.map((table) => [table.name, table] as const))("%s: what was read is sent as it was", (name, table) => {
  expect(table.patch(table.read(FULL))).toEqual(SENT[name]);
});

function table(name: Table["name"]): Table {
  const found = TABLES.find((one) => one.name === name);
  if (found === undefined) throw new Error("There is no such table.");
  return found;
}

it("a chain from which nothing may leave is a row without an address, and is opened only by taking it away", () => {
  const allowed = table("allowedAddresses");
  const rows = allowed.read(FULL);
  expect(rows).toContainEqual({ chain: "polygon", address: "" });
  expect(allowed.patch([{ chain: "tron", address: " " }])).toEqual({ allowedAddresses: { tron: [] } });
  expect(opened(allowed, rows, rows)).toEqual([]);
  expect(opened(allowed, rows, rows.slice(1, 3))).toEqual(["polygon"]);
  expect(opened(allowed, rows, [])).toEqual(["ethereum", "tron", "polygon"]);
  expect(opened(table("limits"), table("limits").read(FULL), [])).toEqual([]);
});

it("the faults of a chain's addresses are counted without the rows that have none", () => {
  const allowed = table("allowedAddresses");
  const rows = [
    { chain: "tron", address: "" },
    { chain: "tron", address: "T1" },
  ];
  const refused = [{ field: "allowedAddresses.tron[0]", message: "is no address of this chain" }];
  expect(rows.map((_, index) => errorsOf(allowed, rows, index, refused).size)).toEqual([0, 1]);
});

it("a fault of the key stands at the key, and one of a cell at the cell", () => {
  const limits = table("limits");
  const rows = limits.read(FULL);
  const refused = [
    { field: "limits.ethereum/USDT", message: "names no token" },
    { field: "limits.tron/USDT.perDay", message: "is no amount" },
  ];
  expect([...errorsOf(limits, rows, 0, refused)]).toEqual([["coin", "names no token"]]);
  expect([...errorsOf(limits, rows, 1, refused)]).toEqual([["perDay", "is no amount"]]);
});
