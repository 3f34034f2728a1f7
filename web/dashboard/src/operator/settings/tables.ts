/** The settings that are lists and maps: each as rows, and rows as the API takes them. */
import type { Schemas } from "../api";

import type { Patch, Settings } from "./fields";

/** What stands in a row, by its column, as it is typed. */
export type Row = Readonly<Record<string, string>>;

export interface TableColumn {
  readonly name: string;
  readonly kind: "coin" | "chain" | "text" | "amount" | "whole" | "switch";
  readonly isOptional?: boolean;
  /** What it means where nothing stands in it. */
  readonly blank?: "nothingLeaves";
}

export interface Table {
  /** As the API writes it, which is also the key of its words. */
  readonly name:
    "limits" | "allowedAddresses" | "nativeGasMax" | "leastRates" | "providers" | "weights" | "tiers" | "packs";
  readonly columns: readonly TableColumn[];
  readonly read: (settings: Settings) => readonly Row[];
  readonly patch: (rows: readonly Row[]) => Patch;
  /** The row's own place in what is sent: no two rows have the same. */
  readonly placeOf: (row: Row, index: number) => string;
  /** Whether the rows are a list, in which their order is kept. */
  readonly isList?: boolean;
}

const OPERATIONS = ["payment", "payout", "refund", "withdrawal", "collection", "swap", "bridge"] as const;
const LIMITS = ["minimum", "perTransaction", "perDay"] as const;

function column(name: string, kind: TableColumn["kind"]): TableColumn {
  return { name, kind };
}

function optional(name: string, kind: TableColumn["kind"]): TableColumn {
  return { name, kind, isOptional: true };
}

/** Return what stands in a cell; an empty text where nothing does. */
export function cellOf(row: Row, name: string): string {
  return row[name] ?? "";
}

/** Return those of a row's cells in which something stands. */
function filled(row: Row, names: readonly string[]): [string, string][] {
  return names.map((name): [string, string] => [name, cellOf(row, name).trim()]).filter(([, text]) => text !== "");
}

function textsOf(values: object): Row {
  return Object.fromEntries(
    Object.entries(values)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]: [string, unknown]) => [name, String(value)]),
  );
}

/** A map from one column to another. */
function mapOf(key: TableColumn, value: TableColumn) {
  return {
    columns: [key, value],
    rowsOf: (map: object): readonly Row[] =>
      Object.entries(map).map(([name, one]: [string, unknown]) => ({ [key.name]: name, [value.name]: String(one) })),
    entriesOf: (rows: readonly Row[]): [string, string][] =>
      rows.map((row) => [cellOf(row, key.name).trim(), cellOf(row, value.name).trim()]),
  };
}

const gas = mapOf(column("project", "text"), column("gas", "whole"));
const providers = mapOf(column("provider", "text"), column("isOn", "switch"));

export const TABLES: readonly Table[] = [
  {
    name: "limits",
    columns: [column("coin", "coin"), ...LIMITS.map((name) => optional(name, "amount"))],
    read: ({ limits }) => Object.entries(limits).map(([coin, limit]) => ({ coin, ...textsOf(limit) })),
    patch: (rows) => ({
      limits: Object.fromEntries(rows.map((row) => [cellOf(row, "coin"), Object.fromEntries(filled(row, LIMITS))])),
    }),
    placeOf: (row) => `limits.${cellOf(row, "coin")}`,
  },
  {
    name: "allowedAddresses",
    columns: [column("chain", "chain"), { ...optional("address", "text"), blank: "nothingLeaves" }],
    // A chain without an address is closed, and stays a row: without one it would be open.
    read: ({ allowedAddresses }) =>
      Object.entries(allowedAddresses).flatMap(([chain, addresses]) =>
        (addresses.length === 0 ? [""] : addresses).map((address) => ({ chain, address })),
      ),
    patch: (rows) => ({ allowedAddresses: grouped(rows) }),
    placeOf: (row) => `allowedAddresses.${cellOf(row, "chain")}.${cellOf(row, "address").trim()}`,
  },
  {
    name: "nativeGasMax",
    columns: gas.columns,
    read: ({ nativeGasMax }) => gas.rowsOf(nativeGasMax),
    patch: (rows) => ({ nativeGasMax: numbersOf(gas.entriesOf(rows)) }),
    placeOf: (row) => `nativeGasMax.${cellOf(row, "project").trim()}`,
  },
  {
    name: "leastRates",
    columns: [column("give", "coin"), column("get", "coin"), column("rate", "amount")],
    read: ({ exchanges }) =>
      Object.entries(exchanges.leastRates).map(([pair, rate]) => {
        const [give = "", get = ""] = pair.split(">");
        return { give, get, rate };
      }),
    patch: (rows) => ({
      exchanges: { leastRates: Object.fromEntries(rows.map((row) => [pairOf(row), cellOf(row, "rate").trim()])) },
    }),
    placeOf: (row) => `exchanges.leastRates.${pairOf(row)}`,
  },
  {
    name: "providers",
    columns: providers.columns,
    read: ({ exchanges }) => providers.rowsOf(exchanges.providers),
    patch: (rows) => ({
      exchanges: {
        providers: Object.fromEntries(providers.entriesOf(rows).map(([name, isOn]) => [name, isOn === "true"])),
      },
    }),
    placeOf: (row) => `exchanges.providers.${cellOf(row, "provider").trim()}`,
  },
  {
    name: "weights",
    columns: [column("chain", "chain"), ...OPERATIONS.map((name) => optional(name, "whole"))],
    read: ({ cpt }) => Object.entries(cpt.weights.chains).map(([chain, weights]) => ({ chain, ...textsOf(weights) })),
    patch: (rows) => ({
      cpt: {
        weights: {
          chains: Object.fromEntries(
            rows.map((row) => [cellOf(row, "chain"), numbersOf(filled(row, OPERATIONS))] as const),
          ),
        },
      },
    }),
    placeOf: (row) => `cpt.weights.chains.${cellOf(row, "chain")}`,
  },
  {
    name: "tiers",
    columns: [
      column("name", "text"),
      column("minCpt", "whole"),
      optional("maxCpt", "whole"),
      column("pricePer10kUsd", "amount"),
    ],
    read: ({ cpt }) => cpt.tiers.map(textsOf),
    patch: (rows) => ({ cpt: { tiers: rows.map(tierOf) } }),
    placeOf: (_, index) => `cpt.tiers[${String(index)}]`,
    isList: true,
  },
  {
    name: "packs",
    columns: [column("name", "text"), column("cpt", "whole"), column("priceUsd", "amount")],
    read: ({ cpt }) => cpt.packs.map(textsOf),
    patch: (rows) => ({
      cpt: {
        packs: rows.map((row) => ({
          name: cellOf(row, "name").trim(),
          cpt: Number(cellOf(row, "cpt")),
          priceUsd: cellOf(row, "priceUsd").trim(),
        })),
      },
    }),
    placeOf: (_, index) => `cpt.packs[${String(index)}]`,
    isList: true,
  },
];

function tierOf(row: Row): Schemas["Tier"] {
  const most = cellOf(row, "maxCpt").trim();
  return {
    name: cellOf(row, "name").trim(),
    minCpt: Number(cellOf(row, "minCpt")),
    maxCpt: most === "" ? null : Number(most),
    pricePer10kUsd: cellOf(row, "pricePer10kUsd").trim(),
  };
}

function pairOf(row: Row): string {
  return `${cellOf(row, "give")}>${cellOf(row, "get")}`;
}

function numbersOf(entries: readonly [string, string][]): Record<string, number> {
  return Object.fromEntries(entries.map(([name, text]) => [name, Number(text)]));
}

function grouped(rows: readonly Row[]): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const row of rows) {
    const [addresses, address] = [(found[cellOf(row, "chain")] ??= []), cellOf(row, "address").trim()];
    if (address !== "") addresses.push(address);
  }
  return found;
}

/** Return the chains that may pay any address again once these rows are all there is. */
export function opened(table: Table, before: readonly Row[], rows: readonly Row[]): readonly string[] {
  if (table.name !== "allowedAddresses") return [];
  const kept = new Set(rows.map((row) => cellOf(row, "chain")));
  return [...new Set(before.map((row) => cellOf(row, "chain")))].filter((chain) => !kept.has(chain));
}

interface Refused {
  readonly field: string;
  readonly message: string;
}

/** What is wrong with a row: of a cell by its column's name, and of the row as a whole by none. */
export type RowErrors = ReadonlyMap<string, string>;

/** Return what the API says of a row's cells. */
export function errorsOf(table: Table, rows: readonly Row[], index: number, refused: readonly Refused[]): RowErrors {
  const row = rows[index] ?? {};
  const place = placesOf(table, rows)[index] ?? table.placeOf(row, index);
  const found = new Map<string, string>();
  for (const { field, message } of refused) {
    const [first] = table.columns;
    if (field === place && first !== undefined) found.set(first.name, message);
    for (const { name } of table.columns) if (field === `${place}.${name}`) found.set(name, message);
  }
  return found;
}

/** Return where the API has each row: addresses of a chain are a list there. */
function placesOf(table: Table, rows: readonly Row[]): readonly string[] {
  if (table.name !== "allowedAddresses") return rows.map((row, index) => table.placeOf(row, index));
  const counted = new Map<string, number>();
  return rows.map((row) => {
    const chain = cellOf(row, "chain");
    // Without an address it is no place in the list, which the chain's own faults are told of.
    if (cellOf(row, "address").trim() === "") return `allowedAddresses.${chain}`;
    const number = counted.get(chain) ?? 0;
    counted.set(chain, number + 1);
    return `allowedAddresses.${chain}[${String(number)}]`;
  });
}

/** Say whether a row before this one has the same place: only one of them would be kept. */
export function isTwice(table: Table, rows: readonly Row[], index: number): boolean {
  const row = rows[index];
  if (row === undefined) return false;
  const place = table.placeOf(row, index);
  return rows.slice(0, index).some((other, at) => table.placeOf(other, at) === place);
}
