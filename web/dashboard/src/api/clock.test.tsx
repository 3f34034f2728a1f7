import { render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { PageLanguageProvider } from "../ui/language";
import { When } from "../ui/When";

import { authorized } from "./client";
import { MERCHANT_PATHS, Session } from "./session";

const HOUR_MS = 3_600_000;

async function answeredAt(date: string | null): Promise<void> {
  const headers: HeadersInit = date === null ? {} : { Date: date };
  const session = new Session(MERCHANT_PATHS);
  session.begin({ accessToken: "token", expiresIn: 900 });
  await authorized(session, () => Promise.resolve(new Response("{}", { headers })))(
    new Request("https://gateway.example/api"),
  );
}

afterEach(async () => {
  await answeredAt(new Date().toUTCString());
});

it.each([
  [-5 * HOUR_MS, "now"],
  [3 * HOUR_MS, "now"],
  [20_000, "20 seconds ago"],
])("a machine whose clock is off by %i ms says how long ago something was by the gateway's", async (offMs, said) => {
  const there = Math.floor(Date.now() / 1_000) * 1_000 - offMs;
  await answeredAt(new Date(there).toUTCString());
  await answeredAt(null);
  render(
    <PageLanguageProvider>
      <When at={new Date(there).toISOString()} />
    </PageLanguageProvider>,
  );
  const shown = screen.getByText(/now|ago|in /).textContent;
  // Some seconds may pass while the test runs.
  expect(shown.replace(/^(\d) seconds? ago$/, "now").replace(/^2\d seconds ago$/, "20 seconds ago")).toBe(said);
});
