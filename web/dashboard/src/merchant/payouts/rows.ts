/** Reads payouts out of a CSV file, and says of every row what is wrong with it before anything is sent. */
import { toUnits } from "../../ui/units";

export interface PayoutRow {
  /** The line of the file, from 1. */
  readonly line: number;
  readonly toAddress: string;
  /** For whom it is at the address, where the row says so. */
  readonly tag?: string;
  readonly amount: string;
  readonly problem: RowProblem | null;
  /** It is equal to an earlier one, which may be meant. */
  readonly isTwice: boolean;
}

export type RowProblem = "columns" | "address" | "amount" | "decimals";

export const ROWS_MAX = 100;
const TAG = "#";
const AMOUNT = /^\d+(\.\d+)?$/;

/**
 * Return the rows of a text with `address,amount` in each line: separated by comma, semicolon or tab, quoted or not,
 * with a heading or without. An amount is a plain decimal: what could be read in two ways is a problem, never guessed.
 * Where the chain has tags, one stands behind its address, after a `#`: an amount with a comma would read as a third cell.
 */
export function readRows(text: string, decimals: number, hasTags = false): readonly PayoutRow[] {
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
    const [destination = "", amount = ""] = cells;
    const to = hasTags ? partsOf(destination) : { toAddress: destination };
    const problem = problemOf(cells, decimals, to);
    const found = `${to.toAddress.toLowerCase()}${TAG}${to.tag ?? ""} ${toUnits(amount, decimals) ?? amount}`;
    rows.push({ line: index + 1, ...to, amount, problem, isTwice: problem === null && seen.has(found) });
    seen.add(found);
  }
  return rows;
}

function isHeading(cells: readonly string[]): boolean {
  return cells.length >= 2 && !/\d/.test(cells.join(""));
}

type To = Pick<PayoutRow, "toAddress" | "tag">;

/** Return the address and the tag of a text; all of it is the address where it has no tag. */
function partsOf(destination: string): To {
  const at = destination.indexOf(TAG);
  return at < 0 ? { toAddress: destination } : { toAddress: destination.slice(0, at), tag: destination.slice(at + 1) };
}

/** Return it as a row of a file has it. */
export function destinationOf({ toAddress, tag }: To): string {
  return tag === undefined ? toAddress : `${toAddress}${TAG}${tag}`;
}

function problemOf(cells: readonly string[], decimals: number, to: To): RowProblem | null {
  const [, amount = ""] = cells;
  // More cells than two may be an amount with a comma in it.
  if (cells.length !== 2) return "columns";
  if (to.toAddress === "" || to.tag === "" || /\s/.test(destinationOf(to))) return "address";
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
