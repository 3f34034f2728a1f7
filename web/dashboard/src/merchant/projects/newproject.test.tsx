import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { merchantSession } from "../api";
import { meQuery, projectsQuery, type Member } from "../queries";
import { mount, refused } from "../../testing/render";

import { NewProject } from "./NewProject";

it("says to whoever may make none that no project is open to them, and offers nothing", async () => {
  await mount(NewProject, {
    session: merchantSession,
    path: "/projects/new",
    at: "/projects/new",
    answer: () => refused(404, "NOT_FOUND"),
    known: (client) => {
      const member = {} as Member["member"];
      client.setQueryData(meQuery.queryKey, { success: true, member, permissions: ["self", "read"] });
      client.setQueryData(projectsQuery.queryKey, []);
    },
  });
  expect(await screen.findByRole("heading", { name: "No project is open to you" })).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Create the project" })).toBeNull();
});
