import { expect, it } from "vitest";

import { fromUnits, minus, plus, ratio, toUnits } from "./units";

it("turns amounts into their smallest units, and what could be read in two ways into nothing", () => {
  expect(toUnits("25", 6)).toBe("25000000");
  expect(toUnits("0.000001", 6)).toBe("1");
  expect(toUnits("1.500000000", 6)).toBe("1500000");
  expect(toUnits("123456789012345678901.000000000000000001", 18)).toBe("123456789012345678901000000000000000001");
  expect(toUnits("7", 0)).toBe("7");
  for (const wrong of ["", "0", "0.00", "-1", "1e5", "1,5", ".5", "1.", "0.0000001", " 1"]) {
    expect(toUnits(wrong, 6), wrong).toBeNull();
  }
});

it("says what one is worth in the other", () => {
  expect(ratio("25", "24.97")).toBe("0.9988");
  expect(ratio("3", "1")).toBe("0.333333");
  expect(ratio("0.0001", "412.5")).toBe("4125000");
  expect(ratio("1000000", "0.000001")).toBe("0.000000000001");
  expect(ratio("0", "1")).toBeNull();
});

it("adds amounts exactly, and writes units as one", () => {
  expect(plus("0.1", "0.2")).toBe("0.3");
  expect(plus("0", "0.000000000000000001")).toBe("0.000000000000000001");
  expect(plus("99.99", "0.01")).toBe("100");
  expect(fromUnits(12_500_000n, 6)).toBe("12.5");
  expect(fromUnits(1n, 6)).toBe("0.000001");
  expect(fromUnits(7n, 0)).toBe("7");
});

it("takes one amount from another exactly", () => {
  expect(minus("20.5", "4")).toBe("16.5");
  expect(minus("0.3", "0.1")).toBe("0.2");
  expect(minus("100", "0")).toBe("100");
  expect(minus("1", "0.000000000000000001")).toBe("0.999999999999999999");
  expect(minus("5", "5")).toBe("0");
  expect(minus("5", "6")).toBe("0");
});
