import { expect, it } from "vitest";

import { keepsNumbers, rawAt } from "./raw";

const BODY = String.raw`{"a": 1.50, "data":{"payload":"not \"this\"}, \\","n":[1,{"x":"]"}]},"text":"\u00fc\/","last":1e2}`;

it.each([
  ["of an event", `{"success":true,"event":{"eventId":"evt_1","payload":${BODY},"deliveries":[]}}`],
  ["with space around it", `{ "event" : { "deliveries" : [ {"payload": 1} ], "payload" : ${BODY} } }`],
])("finds the bytes %s", (_, text) => {
  expect(rawAt(text, ["event", "payload"])).toBe(BODY);
});

it("finds numbers at the end, strings, and nothing where there is nothing", () => {
  expect(rawAt(BODY, ["last"])).toBe("1e2");
  expect(rawAt(BODY, ["a"])).toBe("1.50");
  expect(rawAt(BODY, ["text"])).toBe(String.raw`"\u00fc\/"`);
  expect(rawAt(BODY, ["payload"])).toBeNull();
  expect(rawAt("{}", ["payload"])).toBeNull();
});

it.each([
  ["42", true],
  ["9007199254740993", false],
  ["987654321098765432", false],
  ["9007199254740992000", true],
  ["0.10", true],
  ["-1.50e-7", true],
  ["0.1234567890123456789", false],
  ["1e400", false],
  ["1e-400", false],
  ["-0.0", true],
  ["1" + "0".repeat(21), true],
  [String.raw`"987654321098765432 \"9007199254740993"`, true],
])("knows whether %s is sent as it stands there", (value, isKept) => {
  expect(keepsNumbers(`{"a1234567890123456789": [true, ${value}], "b": 1}`)).toBe(isKept);
});
