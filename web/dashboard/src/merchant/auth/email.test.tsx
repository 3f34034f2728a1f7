import { QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { MantineProvider } from "@mantine/core";
import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { json } from "../../testing/render";
import { makeQueryClient } from "../../ui/Providers";
import { theme } from "../../ui/theme";
import { merchantSession } from "../api";
import { makeRouter } from "../router";

const EMAIL = "ada@shop.example";
const INVITATION = { merchantName: "Nordlicht", email: EMAIL, role: "developer" };

/** Go to a page of those that nobody is signed in on, and return the address that one is at. */
function visit(at: string): () => string {
  // All files share one session, which another one may have left without its token.
  merchantSession.begin({ accessToken: "token", expiresIn: 900 });
  const client = makeQueryClient();
  const router = makeRouter(client);
  const history = createMemoryHistory({ initialEntries: [`/dashboard${at}`] });
  router.update({ ...router.options, history });
  render(
    <MantineProvider theme={theme} env="test">
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return () => history.location.href;
}

const email = () => screen.findByLabelText<HTMLInputElement>(/^E-mail/);

it("of whoever joined is there at sign-in, with the password to be typed next, and not in the address", async () => {
  vi.stubGlobal("fetch", (input: Request | string) => {
    const url = input instanceof Request ? input.url : input;
    return Promise.resolve(json(url.endsWith("/read") ? { invitation: INVITATION } : { success: true }));
  });
  const address = visit("/join#a-token");
  await screen.findByText(/Nordlicht/);
  fireEvent.change(screen.getByLabelText(/^Password/), { target: { value: "a long password" } });
  fireEvent.click(screen.getByRole("button", { name: "Join" }));
  await screen.findByRole("status");
  fireEvent.click(screen.getByRole("link", { name: "Sign in" }));
  expect((await email()).value).toBe(EMAIL);
  expect(document.activeElement).toBe(screen.getByLabelText(/^Password/));
  expect(address()).toBe("/dashboard/sign-in");
});

it("goes along to where a lost password is asked for, and back", async () => {
  const address = visit("/sign-in");
  fireEvent.change(await email(), { target: { value: EMAIL } });
  fireEvent.click(screen.getByRole("link", { name: "Lost the password?" }));
  await screen.findByRole("button", { name: "Ask for a link" });
  expect((await email()).value).toBe(EMAIL);
  fireEvent.click(screen.getByRole("link", { name: "Sign in" }));
  await screen.findByLabelText(/^Password/);
  expect((await email()).value).toBe(EMAIL);
  expect(address()).toBe("/dashboard/sign-in");
});
