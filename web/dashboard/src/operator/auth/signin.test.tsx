import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, refused, showOperator } from "../../testing/render";

import { SignIn } from "./SignIn";

it("asks for a code once the password was right, keeps what was typed, and goes on", async () => {
  const bodies: unknown[] = [];
  const refusals = [refused(403, "TWO_FACTOR_REQUIRED"), refused(401, "TWO_FACTOR_INVALID")];
  await showOperator(SignIn, {
    path: "sign-in",
    answers: {
      "POST /api/admin/auth/sign-in": async (request) => {
        bodies.push(await request.json());
        return refusals[bodies.length - 1] ?? json({ accessToken: "token", expiresIn: 900 });
      },
    },
  });
  const send = () => {
    fireEvent.click(screen.getByRole("button", { name: "Sign in" }));
  };
  fireEvent.change(screen.getByLabelText(/^E-mail/), { target: { value: "ada@gateway.example" } });
  fireEvent.change(screen.getByLabelText(/^Password/), { target: { value: "a long password" } });
  send();
  const code = await screen.findByLabelText<HTMLInputElement>(/^Code/);
  expect(screen.queryByRole("alert")).toBeNull();
  fireEvent.change(code, { target: { value: " 123456 " } });
  send();
  expect(await screen.findByText("TWO_FACTOR_INVALID")).toBeTruthy();
  expect(code.value).toBe(" 123456 ");
  send();
  expect(await screen.findByText("elsewhere")).toBeTruthy();
  const who = { email: "ada@gateway.example", password: "a long password" };
  const withCode = { ...who, totpCode: "123456" };
  expect(bodies).toEqual([who, withCode, withCode]);
});
