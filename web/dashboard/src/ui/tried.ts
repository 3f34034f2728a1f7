/** At first and at least, and how long an attempt itself is waited for once it is due. */
const SOONEST_MS = 3_000;

/**
 * Return in how many milliseconds to look for what came of the soonest of these attempts; false where none is to come. An
 * attempt that is late is looked for as much more seldom as it is late.
 */
export function untilTried(attempts: readonly (string | null)[], now: number): number | false {
  const due = attempts.filter((one) => one !== null).map((one) => new Date(one).getTime());
  return due.length === 0 ? false : SOONEST_MS + Math.abs(Math.min(...due) - now);
}
