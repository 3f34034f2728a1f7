/** What a collection may cost at most, as the dialog says it before it is asked for. All of it on texts and integers. */

const WHOLE_BPS = 10_000n;
const PERCENT = /^(\d{1,2})(?:[.,](\d{1,2}))?$/;

/** Return hundredths of a percent for what was typed; null where it is no share below the whole. */
export function toBps(percent: string): number | null {
  const match = PERCENT.exec(percent.trim());
  if (match === null) return null;
  const [, whole = "0", fraction = ""] = match;
  return Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
}

/** Return such a share of an amount of dollars, to the cent, rounded up. */
export function shareOf(usd: string, bps: number): string {
  const cents = divideUp(toTenThousandths(usd) * BigInt(bps), WHOLE_BPS * 100n);
  return `${cents / 100n}.${(cents % 100n).toString().padStart(2, "0")}`;
}

/** Return a share that covers the fee of when it was last judged, with a quarter of room; null where none does. */
export function coveringPercent(valueUsd: string | null, feeUsd: string | null): string | null {
  if (valueUsd === null || feeUsd === null) return null;
  const [value, fee] = [toTenThousandths(valueUsd), toTenThousandths(feeUsd)];
  if (fee >= value) return null;
  const wanted = divideUp(fee * 125n, value);
  return (wanted > 99n ? 99n : wanted).toString();
}

/** The API says dollars with four decimals at most. */
function toTenThousandths(usd: string): bigint {
  const [whole = "0", fraction = ""] = usd.split(".");
  return BigInt(whole + fraction.slice(0, 4).padEnd(4, "0"));
}

function divideUp(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b;
}
