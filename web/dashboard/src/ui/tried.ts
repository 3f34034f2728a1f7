/** At first and at least, and how long an attempt itself is waited for once it is due. */
const SOONEST_MS = 3_000;
/** Longer than a worker may take over an attempt: meanwhile the next one is told for when it will have given up. */
const UNDER_WAY_MS = 70_000;
/** Timers take no more than some weeks, and whoever looks at a page no longer than this. */
const LATEST_MS = 3_600_000;

/**
 * Return in how many milliseconds to look for what came of the soonest of these attempts; false where none is to come. An
 * attempt that is late is looked for as much more seldom as it is late.
 */
export function untilTried(attempts: readonly (string | null)[], now: number): number | false {
  const due = attempts.filter((one) => one !== null).map((one) => new Date(one).getTime());
  if (due.length === 0) return false;
  const ahead = Math.min(...due) - now;
  const pause = ahead > 0 ? Math.max(0, ahead - UNDER_WAY_MS) : -ahead;
  return Math.min(SOONEST_MS + pause, LATEST_MS);
}
