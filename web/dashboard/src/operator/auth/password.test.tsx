import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, refused, showOperator } from "../../testing/render";

import { SetPassword } from "./SetPassword";

it("a link's token goes along with the password, which stays where it was refused, and then somebody signs in", async () => {
  const bodies: unknown[] = [];
  await showOperator(SetPassword, {
    path: "set-password",
    at: "set-password#opl_1",
    answers: {
      "POST /api/admin/auth/set-password": async (request) => {
        bodies.push(await request.json());
        return bodies.length === 1 ? refused(400, "RESET_TOKEN_INVALID") : json({ success: true, message: "Done." });
      },
    },
  });
  const password = screen.getByLabelText<HTMLInputElement>(/^Password/);
  fireEvent.change(password, { target: { value: "a long password" } });
  fireEvent.click(screen.getByRole("button", { name: "Set the password" }));
  expect(await screen.findByText("RESET_TOKEN_INVALID")).toBeTruthy();
  expect(password.value).toBe("a long password");
  fireEvent.click(screen.getByRole("button", { name: "Set the password" }));
  expect(await screen.findByText("The password is set. Sign in with it.")).toBeTruthy();
  expect(screen.getByRole("link", { name: "Sign in" }).getAttribute("href")).toBe("/sign-in");
  const sent = { token: "opl_1", password: "a long password" };
  expect(bodies).toEqual([sent, sent]);
});
