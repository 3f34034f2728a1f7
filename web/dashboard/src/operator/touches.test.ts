import { expect, it } from "vitest";

import { touches } from "./touches";

it("a change of what is to be sent touches the queue, and what is brought to wallets by it", () => {
  const change = { kind: "outbound", id: "int_1" };
  for (const key of ["outbound", "stakes", "uncollected", "collections"]) expect(touches([key, {}], change)).toBe(true);
  for (const key of ["payments", "job"]) expect(touches([key], change)).toBe(false);
  expect(touches(["outbound"], { kind: "comet", id: "1" })).toBe(false);
});
