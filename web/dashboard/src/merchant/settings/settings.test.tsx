import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { show } from "../../testing/render";

import { SettingsPage } from "./SettingsPage";

it.each([
  ["says that the secret before the present one ends", "2036-01-01T12:00:00.000Z", /It would have signed until.*2036/],
  ["says nothing of a secret that has ended", null, null],
] as const)("replacing the project's secret %s", async (_, previousSecretUntil, words) => {
  await show(SettingsPage, {
    path: "settings",
    answers: {},
    permissions: ["projects.change"],
    project: { previousSecretUntil },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Replace the signing secret" }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).getByText(/The old secret is invalid at once/)).toBeTruthy();
  if (words === null) expect(dialog.textContent).not.toContain("It would have signed until");
  else expect(dialog.textContent).toMatch(words);
});
