import { MantineProvider } from "@mantine/core";
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from "@tanstack/react-router";
import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { PAGES_OF_BOTH } from "./routes";
import { theme } from "./theme";

it("what a page cannot be without is asked for again, and the page comes", async () => {
  vi.spyOn(console, "error").mockReturnValue(); // React tells of every error that a page catches
  vi.spyOn(console, "warn").mockReturnValue();
  let isLost = true;
  const root = createRootRoute();
  const page = createRoute({
    getParentRoute: () => root,
    path: "/",
    beforeLoad: () => {
      if (isLost) throw new TypeError("Failed to fetch");
    },
    component: () => <h1>Here</h1>,
  });
  const router = createRouter({
    routeTree: root.addChildren([page]),
    history: createMemoryHistory({ initialEntries: ["/"] }),
    ...PAGES_OF_BOTH,
  });
  render(
    <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
      <RouterProvider router={router} />
    </MantineProvider>,
  );
  expect(await screen.findByText("OFFLINE")).toBeTruthy();
  isLost = false;
  fireEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByRole("heading", { name: "Here" })).toBeTruthy();
});
