import { describe, expect, it } from "vitest";

import { timesOf } from "./days";

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
