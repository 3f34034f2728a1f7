import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, PROJECT, refused, show } from "../../testing/render";

import { KeysPage } from "./KeysPage";

const KEYS = `/api/merchant/projects/${PROJECT}/api-keys`;

it("shows a new key until another is asked for: nobody takes the one for the other where that is refused", async () => {
  let asked = 0;
  await show(KeysPage, {
    path: "keys",
    permissions: ["read", "keys"],
    answers: {
      [`GET ${KEYS}`]: { success: true, keys: [] },
      [`POST ${KEYS}`]: () => {
        asked += 1;
        return asked === 1 ? json({ success: true, apiKey: "ck_live_first" }, 201) : refused(409, "TOO_MANY_KEYS");
      },
    },
  });
  const issue = (name: string) => {
    fireEvent.change(screen.getByRole("textbox", { name: /^Name/ }), { target: { value: name } });
    fireEvent.click(screen.getByRole("button", { name: "Create the key" }));
  };
  await screen.findByRole("textbox", { name: /^Name/ });
  issue("Shop");
  expect(await screen.findByText("ck_live_first")).toBeTruthy();
  issue("Supplier");
  expect(await screen.findByText("TOO_MANY_KEYS")).toBeTruthy();
  expect(screen.queryByText("ck_live_first")).toBeNull();
});
