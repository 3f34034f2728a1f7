import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { merchantSession } from "../api";
import { meQuery, projectsQuery, type Member } from "../queries";
import { json, mount, refused } from "../../testing/render";

import { NewProject } from "./NewProject";

it("says to whoever may make none that no project is open to them, offers nothing, and lets them leave", async () => {
  let isReached = false;
  await mount(NewProject, {
    session: merchantSession,
    path: "/projects/new",
    at: "/projects/new",
    answer: ({ url }) =>
      isReached && url.endsWith("/api/auth/logout") ? json({ success: true }) : refused(503, "UNAVAILABLE"),
    known: (client) => {
      const member = {} as Member["member"];
      client.setQueryData(meQuery.queryKey, { success: true, member, permissions: ["self", "read"] });
      client.setQueryData(projectsQuery.queryKey, []);
    },
  });
  expect(await screen.findByRole("heading", { name: "No project is open to you" })).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Create the project" })).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Sign out" }));
  expect(await screen.findByText(/You may still be signed in/)).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: "Stay signed in" }));
  isReached = true;
  fireEvent.click(screen.getByRole("button", { name: "Sign out" }));
  await expect.poll(() => merchantSession.state, { timeout: 20_000 }).toBe("signed-out");
});
