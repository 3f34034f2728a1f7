import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { showOperator } from "../../testing/render";
import type { Schemas } from "../api";

import { PeoplePage } from "./PeoplePage";

const BOB: Schemas["OperatorView"] = {
  operatorId: "opr_2",
  email: "bob@gateway.example",
  name: "Bob",
  role: "support",
  hasTwoFactor: true,
  disabledAt: null,
  createdAt: "2026-01-31T12:00:00.000Z",
};

it.each([
  ["a person", {}, ["Role"], ["New link", "Reset second factor", "Disable"]],
  ["one without a second factor", { hasTwoFactor: false }, ["Role"], ["New link", "Disable"]],
  ["one who was let out", { disabledAt: BOB.createdAt }, ["Enable"], []],
])("what is seldom done about %s stands in one menu, and the rest beside it", async (_, changed, beside, inMenu) => {
  await showOperator(PeoplePage, {
    path: "people",
    permissions: ["operators.read", "operators.manage"],
    answers: { "GET /api/admin/operators": { operators: [{ ...BOB, ...changed }] } },
  });
  const row = await screen.findByRole("row", { name: /bob@gateway/ });
  const menu = within(row).queryByRole("button", { name: /^What can be done/ });
  const buttons = within(row).getAllByRole("button");
  expect(buttons.filter((button) => button !== menu).map((button) => button.textContent)).toEqual(beside);
  if (menu === null) {
    expect(inMenu).toEqual([]);
    return;
  }
  fireEvent.click(menu);
  const items = await screen.findAllByRole("menuitem");
  expect(items.map((item) => item.textContent)).toEqual(inMenu);
});
