/** Reads payouts out of a CSV file, and says of every row what is wrong with it before anything is sent. */
import { toUnits } from "../../ui/units";

export interface PayoutRow {
  /** The line of the file, from 1. */
  readonly line: number;
  readonly toAddress: string;
  readonly amount: string;
  readonly problem: RowProblem | null;
  /** It is equal to an earlier one, which may be meant. */
  readonly isTwice: boolean;
}

export type RowProblem = "columns" | "address" | "amount" | "decimals";

export const ROWS_MAX = 100;
const AMOUNT = /^\d+(\.\d+)?$/;

/**
 * Return the rows of a text with `address,amount` in each line: separated by comma, semicolon or tab, quoted or not,
 * with a heading or without. An amount is a plain decimal: what could be read in two ways is a problem, never guessed.
 */
export function readRows(text: string, decimals: number): readonly PayoutRow[] {
  const seen = new Set<string>();
  const rows: PayoutRow[] = [];
  for (const [index, line] of text
    .replace(/^\uFEFF/, "")
    .split(/\r\n|\r|\n/)
    .entries()) {
    if (line.trim() === "") continue;
    const cells = line.split(/[,;\t]/).map((cell) =>
      cell
        .trim()
        .replace(/^"(.*)"$/, "$1")
        .trim(),
    );
    if (rows.length === 0 && index === 0 && isHeading(cells)) continue;
    const [toAddress = "", amount = ""] = cells;
    const problem = problemOf(cells, decimals);
    const found = `${toAddress.toLowerCase()} ${toUnits(amount, decimals) ?? amount}`;
    rows.push({ line: index + 1, toAddress, amount, problem, isTwice: problem === null && seen.has(found) });
    seen.add(found);
  }
  return rows;
}

function isHeading(cells: readonly string[]): boolean {
  return cells.length >= 2 && !/\d/.test(cells.join(""));
}

function problemOf(cells: readonly string[], decimals: number): RowProblem | null {
  const [toAddress = "", amount = ""] = cells;
  // More cells than two may be an amount with a comma in it.
  if (cells.length !== 2) return "columns";
  if (toAddress === "" || /\s/.test(toAddress)) return "address";
  if (!AMOUNT.test(amount) || /^[0.]+$/.test(amount)) return "amount";
  return (amount.split(".")[1]?.length ?? 0) > decimals ? "decimals" : null;
}

/** Add amounts up exactly. */
export function total(rows: readonly PayoutRow[], decimals: number): string {
  const scale = 10n ** BigInt(decimals);
  const units = rows.reduce((sum, { amount }) => {
    const [whole = "0", fraction = ""] = amount.split(".");
    return sum + BigInt(whole) * scale + BigInt(fraction.padEnd(decimals, "0") || "0");
  }, 0n);
  const fraction = (units % scale).toString().padStart(decimals, "0").replace(/0+$/, "");
  return `${units / scale}${decimals === 0 || fraction === "" ? "" : `.${fraction}`}`;
}
