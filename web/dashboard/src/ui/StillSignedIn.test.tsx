import { MantineProvider } from "@mantine/core";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";

import { MERCHANT_PATHS, Session } from "../api/session";

import { StillSignedIn } from "./StillSignedIn";
import { theme } from "./theme";
import { UserMenu } from "./UserMenu";

it("who signs out offline is told that it may not have happened, and signs out once it does", async () => {
  let isOnline = false;
  const session = new Session(MERCHANT_PATHS, () =>
    isOnline ? Promise.resolve(new Response("{}")) : Promise.reject(new TypeError("Failed to fetch")),
  );
  session.begin({ accessToken: "token", expiresIn: 900 });
  render(
    <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
      <StillSignedIn session={session} />
      <UserMenu person={{ name: "Ada", email: "ada@shop.example" }} role="Owner" session={session} />
    </MantineProvider>,
  );
  expect(screen.queryByRole("alert")).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Ada: account" }));
  fireEvent.click(await screen.findByRole("menuitem", { name: "Sign out" }));
  expect(await screen.findByText(/You may still be signed in/)).toBeTruthy();
  expect(screen.getByText("OFFLINE")).toBeTruthy();
  expect(session.state).toBe("signed-in");
  fireEvent.click(screen.getByRole("button", { name: "Stay signed in" }));
  expect(screen.queryByRole("alert")).toBeNull();
  await session.end();
  isOnline = true;
  fireEvent.click(await screen.findByRole("button", { name: "Sign out" }));
  await waitFor(() => {
    expect(session.state).toBe("signed-out");
  });
  expect(screen.queryByRole("alert")).toBeNull();
});
