import { expect, it } from "vitest";

import { merged } from "./merged";
import { TABLES, type Row, type Table } from "./tables";

function table(name: Table["name"]): Table {
  const found = TABLES.find((one) => one.name === name);
  if (found === undefined) throw new Error("There is no such table.");
  return found;
}

const limit = (coin: string, perDay = "1", minimum = ""): Row => ({ coin, minimum, perDay });
const tier = (name: string, minCpt: number, pricePer10kUsd = "1"): Row => ({
  name,
  minCpt: String(minCpt),
  pricePer10kUsd,
});

it.each([
  ["keeps what others added", [limit("a")], [limit("a", "2")], [limit("a"), limit("b")], [limit("a", "2"), limit("b")]],
  ["adds what is added here", [limit("a")], [limit("a"), limit("c")], [limit("b")], [limit("c"), limit("b")]],
  [
    "takes away what is taken away here",
    [limit("a"), limit("b")],
    [limit("b")],
    [limit("a", "3"), limit("b")],
    [limit("b")],
  ],
  ["leaves away what others took away", [limit("a"), limit("b")], [limit("a", "2"), limit("b")], [], [limit("a", "2")]],
  ["puts each cell together", [limit("a")], [limit("a", "2")], [limit("a", "1", "5")], [limit("a", "2", "5")]],
  ["lets what is written here stand", [limit("a")], [limit("a", "2")], [limit("a", "3")], [limit("a", "2")]],
  ["puts what both added together", [], [limit("a", "2")], [limit("a", "3", "5")], [limit("a", "2", "5")]],
  ["gives what others changed", [limit("a")], [limit("a")], [limit("a", "3")], [limit("a", "3")]],
])("%s", (_, begun, own, fresh, expected) => {
  expect(merged(table("limits"), { begun, own, fresh })).toEqual(expected);
});

it("keeps the order of a list, and calls its rows by their names", () => {
  const begun = [tier("S", 0), tier("L", 10)];
  const own = [tier("S", 0), tier("L", 10, "2"), tier("XL", 30)];
  const fresh = [tier("XS", 0), tier("S", 5), tier("L", 10)];
  expect(merged(table("tiers"), { begun, own, fresh })).toEqual([
    tier("XS", 0),
    tier("S", 5),
    tier("L", 10, "2"),
    tier("XL", 30),
  ]);
});

it("opens no chain that somebody else closed", () => {
  const begun = [{ chain: "tron", address: "T1" }];
  const own = [...begun, { chain: "ethereum", address: "0x1" }];
  const fresh = [{ chain: "tron", address: "" }];
  const rows = merged(table("allowedAddresses"), { begun, own, fresh });
  expect(table("allowedAddresses").patch(rows)).toEqual({ allowedAddresses: { tron: [], ethereum: ["0x1"] } });
});
