/** Amounts as their smallest units, and back. All of it on texts and big integers: a number would round. */

const PLAIN = /^\d+(\.\d+)?$/;

/** Return a decimal amount in the token's smallest unit; null where it is no such amount, or has too many decimals. */
export function toUnits(amount: string, decimals: number): string | null {
  if (!PLAIN.test(amount)) return null;
  const [whole = "0", fraction = ""] = amount.split(".");
  const kept = fraction.replace(/0+$/, "");
  if (kept.length > decimals) return null;
  const units = BigInt(whole) * 10n ** BigInt(decimals) + BigInt(kept.padEnd(decimals, "0") || "0");
  return units === 0n ? null : units.toString();
}

/** Return what is left of a decimal amount when another one is taken from it: nothing where that is more. */
export function minus(amount: string, taken: string): string {
  const places = Math.max(amount.split(".")[1]?.length ?? 0, taken.split(".")[1]?.length ?? 0);
  const left = BigInt(toUnits(amount, places) ?? "0") - BigInt(toUnits(taken, places) ?? "0");
  return left <= 0n ? "0" : fromUnits(left, places);
}

/** Return what two decimal amounts are together. */
export function plus(one: string, other: string): string {
  const places = Math.max(one.split(".")[1]?.length ?? 0, other.split(".")[1]?.length ?? 0);
  return fromUnits(BigInt(toUnits(one, places) ?? "0") + BigInt(toUnits(other, places) ?? "0"), places);
}

/** Return so many of the smallest unit as a decimal amount. */
export function fromUnits(units: bigint, decimals: number): string {
  const digits = units.toString().padStart(decimals + 1, "0");
  const point = digits.length - decimals;
  const fraction = digits.slice(point).replace(/0+$/, "");
  return digits.slice(0, point) + (fraction === "" ? "" : `.${fraction}`);
}

/** Return what one unit of the first is in the second, to six significant digits, for people to compare. */
export function ratio(given: string, got: string): string | null {
  const places = Math.max(given.split(".")[1]?.length ?? 0, got.split(".")[1]?.length ?? 0);
  const a = toUnits(given, places);
  const b = toUnits(got, places);
  if (a === null || b === null) return null;
  const scale = 10n ** 24n;
  const digits = ((BigInt(b) * scale) / BigInt(a)).toString().padStart(25, "0");
  const point = digits.length - 24;
  const first = digits.search(/[1-9]/);
  if (first < 0) return null;
  const end = Math.max(point, first + 6);
  const fraction = digits.slice(point, end).replace(/0+$/, "");
  return digits.slice(0, point).replace(/^0+(?=\d)/, "") + (fraction === "" ? "" : `.${fraction}`);
}
