import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { DESCRIBED } from "../../testing/described";
import { one, showOperator } from "../../testing/render";
import type { Schemas } from "../api";

import { Deposits } from "./pages";

const PATH = "/api/admin/deposits";

it.each([
  [{ heldAmount: "0.25", heldReason: null, resolution: null }, "0.25 USDX"],
  [{ heldAmount: "1", heldReason: "wrong_chain", resolution: null }, "Wrong chain"],
  [{ heldAmount: "0", heldReason: null, resolution: null }, "\u2013"],
] as const)("of what is held of a deposit is told how much, or why: %j", async (held, told) => {
  const { deposits } = DESCRIBED.operator.example(PATH) as { readonly deposits: readonly [Schemas["DepositRow"]] };
  const row = { ...deposits[0], ...held, token: "USDX" };
  await showOperator(Deposits, { path: "deposits", answers: { [`GET ${PATH}`]: { ...one, deposits: [row] } } });
  const table = await screen.findByRole("table");
  const headings = within(table).getAllByRole("columnheader");
  const place = headings.findIndex((heading) => heading.textContent === "Held");
  expect(within(table).getAllByRole("cell")[place]?.textContent).toContain(told);
});
