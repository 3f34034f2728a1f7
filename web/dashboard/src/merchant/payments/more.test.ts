import { expect, it } from "vitest";

import { isMoreRight, moreOf, NOTHING_MORE } from "./More";

it("sends what was typed beside the price, and nothing of what was left out", () => {
  expect(moreOf(NOTHING_MORE)).toEqual({});
  const typed = { ...NOTHING_MORE, customerName: " Ada ", successUrl: " ", minutes: 30, metadata: '{"cart": [1]}' };
  expect(moreOf(typed)).toEqual({ customerName: "Ada", expiresInMinutes: 30, metadata: { cart: [1] } });
});

it("takes a JSON object for metadata, of numbers that are sent as they were typed, and nothing else", () => {
  const user = "987654321098765432";
  const isRight = (metadata: string) => isMoreRight({ ...NOTHING_MORE, metadata });
  for (const metadata of ["", " ", "{}", '{"a": null}', `{"a": "${user}"}`]) expect(isRight(metadata)).toBe(true);
  for (const metadata of ["[]", "null", "1", "a", "{", `{"a": ${user}}`]) expect(isRight(metadata)).toBe(false);
});
