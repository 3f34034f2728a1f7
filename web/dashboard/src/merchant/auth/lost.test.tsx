import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, show } from "../../testing/render";

import { LostPassword } from "./LostPassword";

it("can be asked for again where the address was wrong, and not for the same one twice", async () => {
  const asked: unknown[] = [];
  await show(LostPassword, {
    path: "lost-password",
    answers: {
      "POST /api/auth/password-reset/request": async (request) => {
        asked.push(await request.json());
        return json({ success: true });
      },
    },
  });
  const email = screen.getByLabelText(/^E-mail/);
  const ask = screen.getByRole<HTMLButtonElement>("button", { name: "Ask for a link" });
  const status = screen.getByRole("status");
  fireEvent.change(email, { target: { value: "ada@shp.example" } });
  fireEvent.click(ask);
  await waitFor(() => {
    expect(status.textContent).not.toBe("");
  });
  expect(ask.disabled).toBe(true);
  fireEvent.change(email, { target: { value: "ada@shop.example" } });
  expect([ask.disabled, status.textContent]).toEqual([false, ""]);
  fireEvent.click(ask);
  await waitFor(() => {
    expect(ask.disabled && status.textContent !== "").toBe(true);
  });
  expect(asked).toEqual([{ email: "ada@shp.example" }, { email: "ada@shop.example" }]);
});
