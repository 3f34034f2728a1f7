import { expect, it } from "vitest";

import { rawAt } from "./raw";

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
