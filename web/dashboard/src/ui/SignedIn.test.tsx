import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";

import { MERCHANT_PATHS, Session } from "../api/session";
import { SignInAgain } from "../merchant/auth/SignInAgain";
import { merchantSession } from "../merchant/api";
import { json, refused, show, type Answers } from "../testing/render";

import { SignedIn } from "./SignedIn";

const tokenOf = (whose: string) => ({
  accessToken: `head.${btoa(JSON.stringify({ sub: whose }))}.tail`,
  expiresIn: 900,
});

/** Who the gateway lets in by the browser's cookie, and by a password. */
let refreshed: string | null = null;
let signedIn = "ada";

function PageOfForm() {
  return (
    <>
      <SignedIn session={merchantSession} basePath="" SignInAgain={SignInAgain} />
      <h1>New payout</h1>
      <form>
        <label>
          To address <input defaultValue="" />
        </label>
      </form>
    </>
  );
}

async function open(answers: Answers = {}): Promise<void> {
  document.title = "New payout · Cambist";
  await show(PageOfForm, {
    path: "payouts/new",
    answers: {
      "POST /api/auth/refresh": () =>
        refreshed === null ? refused(401, "SESSION_ENDED") : json({ success: true, ...tokenOf(refreshed) }),
      "POST /api/auth/login": () => json({ success: true, ...tokenOf(signedIn) }),
      ...answers,
    },
    member: { email: "ada@shop.example" },
  });
  merchantSession.begin(tokenOf("ada"));
}

const field = () => screen.getByLabelText<HTMLInputElement>(/To address/);
const end = () => act(() => merchantSession.renew(tokenOf("ada").accessToken));

beforeEach(() => {
  refreshed = null;
  signedIn = "ada";
});

it("leads to signing in where nothing is typed that would be lost", async () => {
  await open();
  fireEvent.input(field(), { target: { value: "0x52" } });
  fireEvent.input(field(), { target: { value: "" } });
  await end();
  expect(await screen.findByText("elsewhere")).toBeTruthy();
});

it("keeps what is typed while somebody signs in over it, and goes on where they were", async () => {
  await open();
  field().focus();
  fireEvent.input(field(), { target: { value: "0x5290" } });
  await end();
  expect(await screen.findByRole("dialog", { name: "Sign in" })).toBeTruthy();
  expect(screen.getByText(/what you typed is still there/)).toBeTruthy();
  expect(screen.getByLabelText<HTMLInputElement>(/^E-mail/).value).toBe("ada@shop.example");
  const password = screen.getByLabelText<HTMLInputElement>(/^Password/);
  await waitFor(() => {
    expect(document.activeElement).toBe(password);
  });
  fireEvent.keyDown(password, { key: "Escape" });
  fireEvent.change(password, { target: { value: "a long password" } });
  fireEvent.click(screen.getByRole("button", { name: "Sign in" }));
  await waitFor(() => {
    expect(screen.queryByRole("dialog")).toBeNull();
  });
  expect([field().value, document.title, merchantSession.state]).toEqual([
    "0x5290",
    "New payout · Cambist",
    "signed-in",
  ]);
  expect(document.activeElement).toBe(field());
});

it("goes on once they have signed in in another page of the browser", async () => {
  await open();
  fireEvent.input(field(), { target: { value: "0x5290" } });
  await end();
  await screen.findByRole("dialog", { name: "Sign in" });
  refreshed = "ada";
  new Session(MERCHANT_PATHS).enter(tokenOf("ada"));
  await waitFor(() => {
    expect(screen.queryByRole("dialog")).toBeNull();
  });
  expect(field().value).toBe("0x5290");
});

it("begins anew where it is somebody else who signs in", async () => {
  const reload = vi.spyOn(merchantSession, "reload").mockReturnValue();
  signedIn = "bob";
  await open();
  fireEvent.input(field(), { target: { value: "0x5290" } });
  await end();
  fireEvent.change(await screen.findByLabelText(/^Password/), { target: { value: "a long password" } });
  fireEvent.click(screen.getByRole("button", { name: "Sign in" }));
  await waitFor(() => {
    expect(reload).toHaveBeenCalledOnce();
  });
  expect(screen.getByRole("dialog", { name: "Sign in" })).toBeTruthy();
});

it("keeps nothing any more where they sign out themselves after that, in another page of the browser", async () => {
  await open();
  fireEvent.input(field(), { target: { value: "0x5290" } });
  await end();
  await screen.findByRole("dialog", { name: "Sign in" });
  const other = new Session(MERCHANT_PATHS, () => Promise.resolve(json({ success: true })));
  other.begin(tokenOf("ada"));
  await act(() => other.end());
  expect(await screen.findByText("elsewhere")).toBeTruthy();
});

it("leads to signing in whoever signs out where the gateway has ended the session before it answers", async () => {
  let answer = (): void => undefined;
  await open({
    "POST /api/auth/logout": () =>
      new Promise<Response>((resolve) => {
        answer = () => {
          resolve(json({ success: true }));
        };
      }),
  });
  fireEvent.input(field(), { target: { value: "0x5290" } });
  const left = merchantSession.end();
  await end();
  await act(async () => {
    answer();
    await left;
  });
  expect(await screen.findByText("elsewhere")).toBeTruthy();
  expect(merchantSession.hasEnded).toBe(false);
});

it("leads to signing in where they signed out themselves in another page of the browser", async () => {
  await open();
  fireEvent.input(field(), { target: { value: "0x5290" } });
  const other = new Session(MERCHANT_PATHS, () => Promise.resolve(json({ success: true })));
  other.begin(tokenOf("ada"));
  await act(() => other.end());
  expect(await screen.findByText("elsewhere")).toBeTruthy();
});
