import { expect, it } from "vitest";

import { piecesOf } from "./InPieces";

it.each([
  "https://hooks.shop.example/v2/2f1c9a7e5b3d4f6a8c0e1b2d3f4a5c6e?environment=production&token=AbCdEfGhIjKlMnOpQrStUvWxYz&a=b",
  "signer.session.fresh_payouts_per_hour",
  "payout:po_y3cg7gxmx1cvwqqzdk0bfe1e6c",
  "https://a.b.c/d/e/f/g?h=i&j=k",
  "a".repeat(1_001),
])("no piece of a long word is a letter or two, and none is longer than half of a phone's line: %s", (text) => {
  const pieces = piecesOf(text);
  expect(pieces.join("")).toBe(text);
  expect(pieces.filter((piece) => piece.length < 4 || piece.length > 12)).toEqual([]);
});

it("breaks behind what separates the parts", () => {
  expect(piecesOf("https://shop.example/hooks?mode=live")).toEqual([
    "https://",
    "shop.",
    "example/",
    "hooks?",
    "mode=",
    "live",
  ]);
  expect(["", "ok", "7"].map(piecesOf)).toEqual([[], ["ok"], ["7"]]);
});
