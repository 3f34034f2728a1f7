import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, refused, showOperator } from "../../testing/render";

import { Enrol } from "./Enrol";

const AUTH = "/api/admin/auth";
const WHO = { email: "ada@gateway.example", password: "a long password" };

it("the first sign-in sets an authenticator up, keeps a code that was wrong, and goes on once the codes are kept", async () => {
  const bodies: unknown[] = [];
  const signed: unknown[] = [];
  let answers = 0;
  await showOperator(
    () => (
      <Enrol
        {...WHO}
        onSignedIn={(one) => Promise.resolve(void signed.push(one))}
        onFoundOn={() => expect.unreachable()}
      />
    ),
    {
      path: "sign-in",
      answers: {
        [`POST ${AUTH}/two-factor/enrol`]: async (request) => {
          bodies.push(await request.json());
          return json({ secret: "JBSWY3DPEHPK3PXP", qrCode: "data:image/png;base64,AA==" });
        },
        [`POST ${AUTH}/two-factor/confirm`]: async (request) => {
          bodies.push(await request.json());
          answers += 1;
          if (answers === 1) return refused(401, "TWO_FACTOR_INVALID");
          return json({ accessToken: "token", expiresIn: 900, recoveryCodes: ["4k2m7-qvx4d", "9zt3c-1bnw8"] });
        },
      },
    },
  );
  expect(await screen.findByText("JBSWY3DPEHPK3PXP")).toBeTruthy();
  const code = screen.getByRole<HTMLInputElement>("textbox");
  fireEvent.change(code, { target: { value: " 123456 " } });
  fireEvent.click(screen.getByRole("button", { name: "Confirm" }));
  expect(await screen.findByText("TWO_FACTOR_INVALID")).toBeTruthy();
  expect(code.value).toBe(" 123456 ");
  fireEvent.click(screen.getByRole("button", { name: "Confirm" }));
  const codes = await screen.findByText(/4k2m7-qvx4d/);
  // Each on a line of its own: what is written down by hand is not taken for another one's part.
  expect([codes.className, codes.textContent]).toEqual(["secret", "4k2m7-qvx4d\n9zt3c-1bnw8"]);
  const sent = { ...WHO, totpCode: "123456" };
  expect([bodies, signed]).toEqual([[WHO, sent, sent], []]);
  fireEvent.click(screen.getByRole("button", { name: "I have kept them: go on" }));
  await expect.poll(() => signed.length, { timeout: 20_000 }).toBe(1);
});
