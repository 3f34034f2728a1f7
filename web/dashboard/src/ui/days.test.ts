import { afterEach, describe, expect, it, vi } from "vitest";

import { timesOf } from "./days";
import { askedFor } from "./Overview";

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("days of an address", () => {
  it("are from the beginning of the first to the end of the last, wherever one is", () => {
    const { from, to } = timesOf("2026-03-29", "2026-03-29");
    expect(new Date(from ?? "").getTime()).toBe(new Date(2026, 2, 29).getTime());
    expect(new Date(to ?? "").getTime()).toBe(new Date(2026, 2, 30).getTime());
  });

  it("are left out where there is none", () => {
    expect(timesOf(undefined, undefined)).toEqual({});
    expect(timesOf("yesterday", "2026-12-31")).toEqual({ to: new Date(2027, 0, 1).toISOString() });
    expect(timesOf("", "20261-01-01")).toEqual({});
    expect(timesOf("0002-01-31", undefined)).toEqual({});
  });
});

it.each([
  ["2026-03-13T04:30:00.000Z", "2026-03-07"],
  ["2026-11-07T04:30:00.000Z", "2026-10-31"],
])("seven days are seven of the calendar's at %s, of which one has 23 or 25 hours", (now, first) => {
  vi.stubEnv("TZ", "America/New_York");
  const { from = "" } = askedFor("week", Date.parse(now));
  expect(new Date(from).toLocaleDateString("en-CA")).toBe(first);
});
