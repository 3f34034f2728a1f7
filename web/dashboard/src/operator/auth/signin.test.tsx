import { act, fireEvent, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { OPERATOR_PATHS, Session } from "../../api/session";
import { json, refused, showOperator } from "../../testing/render";

import { operatorSession } from "../api";

import { SignIn } from "./SignIn";

function typeWho() {
  fireEvent.change(screen.getByLabelText(/^E-mail/), { target: { value: "ada@gateway.example" } });
  fireEvent.change(screen.getByLabelText(/^Password/), { target: { value: "a long password" } });
}

function send() {
  fireEvent.click(screen.getByRole("button", { name: "Sign in" }));
}

async function confirmAuthenticator() {
  expect(await screen.findByText("JBSWY3DPEHPK3PXP")).toBeTruthy();
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "123456" } });
  fireEvent.click(screen.getByRole("button", { name: "Confirm" }));
}

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
  typeWho();
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

it("says in minutes how long to wait after too many wrong codes", async () => {
  await showOperator(SignIn, {
    path: "sign-in",
    answers: {
      "POST /api/admin/auth/sign-in": () => {
        const headers = { "Content-Type": "application/json", "Retry-After": "870" };
        return new Response(JSON.stringify({ error: "No.", code: "TOO_MANY_CODES" }), { status: 429, headers });
      },
    },
  });
  typeWho();
  send();
  expect(await screen.findByText("Try again in 15 minutes.")).toBeTruthy();
});

it("goes on by itself once somebody has signed in in another page of the browser", async () => {
  await showOperator(SignIn, {
    path: "sign-in",
    at: "sign-in?next=%2Fqueue",
    answers: { "POST /api/admin/auth/sign-out": {} },
  });
  await act(() => operatorSession.end());
  expect(screen.queryByText("elsewhere")).toBeNull();
  expect(screen.queryByText(/You have been signed out/)).toBeNull();
  new Session(OPERATOR_PATHS).enter({ accessToken: "token", expiresIn: 900 });
  expect(await screen.findByText("elsewhere")).toBeTruthy();
});

it("says so where somebody is there as the session has ended", async () => {
  await showOperator(SignIn, { path: "sign-in", answers: {} });
  const ended = new Session(OPERATOR_PATHS, () => Promise.resolve(new Response("{}", { status: 200 })));
  ended.begin({ accessToken: "token", expiresIn: 900 });
  await ended.end();
  await vi.waitFor(() => {
    expect(operatorSession.hasEnded).toBe(true);
  });
  fireEvent.change(screen.getByLabelText(/^E-mail/), { target: { value: "ada@gateway.example" } });
  expect(await screen.findByText(/You have been signed out/)).toBeTruthy();
});

it("asks for a code where an authenticator turns out to be set up already, and says so", async () => {
  await showOperator(SignIn, {
    path: "sign-in",
    answers: {
      "POST /api/admin/auth/sign-in": () => refused(403, "TWO_FACTOR_NOT_ENROLLED"),
      "POST /api/admin/auth/two-factor/enrol": { secret: "JBSWY3DPEHPK3PXP", qrCode: "data:image/png;base64,AA==" },
      "POST /api/admin/auth/two-factor/confirm": () => refused(409, "TWO_FACTOR_ON"),
    },
  });
  typeWho();
  send();
  await confirmAuthenticator();
  expect(await screen.findByRole("button", { name: "Sign in" })).toBeTruthy();
  expect(screen.getByRole("alert").textContent).toContain("TWO_FACTOR_ON");
  const code = screen.getByLabelText<HTMLInputElement>(/^Code/);
  expect([code.value, document.activeElement]).toEqual(["", code]);
});

it("stays with the codes that are shown this once, whoever signs in in another page", async () => {
  await showOperator(SignIn, {
    path: "sign-in",
    answers: {
      "POST /api/admin/auth/sign-out": {},
      "POST /api/admin/auth/sign-in": () => refused(403, "TWO_FACTOR_NOT_ENROLLED"),
      "POST /api/admin/auth/two-factor/enrol": { secret: "JBSWY3DPEHPK3PXP", qrCode: "data:image/png;base64,AA==" },
      "POST /api/admin/auth/two-factor/confirm": {
        accessToken: "token",
        expiresIn: 900,
        recoveryCodes: ["4k2m7-qvx4d"],
      },
    },
  });
  await act(() => operatorSession.end());
  typeWho();
  send();
  await confirmAuthenticator();
  expect(await screen.findByText(/4k2m7-qvx4d/)).toBeTruthy();
  new Session(OPERATOR_PATHS).enter({ accessToken: "token", expiresIn: 900 });
  await vi.waitFor(() => {
    expect(operatorSession.state).toBe("unknown");
  });
  await act(() => new Promise((resolve) => setTimeout(resolve, 50)));
  expect(screen.queryByText("elsewhere")).toBeNull();
  expect(screen.getByText(/4k2m7-qvx4d/)).toBeTruthy();
});
