import { expect, it } from "vitest";

import { untilTried } from "./tried";

const NOW = Date.parse("2026-01-31T12:00:00.000Z");
const at = (seconds: number) => new Date(NOW + 1_000 * seconds).toISOString();

it.each([
  ["nothing is to come", [], false],
  ["each has ended", [null, null], false],
  ["one is due", [at(0)], 3_000],
  ["the soonest may be under way", [at(600), null, at(60)], 3_000],
  ["the soonest is to come", [at(600), null, at(300)], 233_000],
  ["the soonest is to come in a month", [at(30 * 86_400)], 3_600_000],
  ["one is late", [at(-20)], 23_000],
] as const)("what came of an attempt is looked for once it was made: %s", (_, attempts, expected) => {
  expect(untilTried(attempts, NOW)).toBe(expected);
});
