import { describe, expect, it } from "vitest";

import { coveringPercent, shareOf, toBps } from "./cost";

describe("what a collection may cost", () => {
  it.each([
    ["5", 500],
    ["99.99", 9999],
    ["0,5", 50],
    [" 24.1 ", 2410],
    ["100", null],
    ["-5", null],
    ["5.001", null],
    ["a", null],
    ["", null],
  ])("takes %j for a share of %j hundredths of a percent", (typed, bps) => {
    expect(toBps(typed)).toBe(bps);
  });

  it.each([
    ["3.5", 5000, "1.75"],
    ["3.5", 2501, "0.88"],
    ["0.0001", 1, "0.01"],
    ["1000000", 9999, "999900.00"],
    ["12", 0, "0.00"],
  ])("says of %s dollars and %i at most %s", (usd, bps, most) => {
    expect(shareOf(usd, bps)).toBe(most);
  });

  it.each([
    ["3.5", "0.8422", "31"],
    ["3.5", "3.4", "99"],
    ["3.5", "3.5", null],
    [null, "1", null],
    ["1", null, null],
  ])("offers for a worth of %s and a fee of %s a share of %s percent", (value, fee, percent) => {
    expect(coveringPercent(value, fee)).toBe(percent);
  });
});
