import { MantineProvider } from "@mantine/core";
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from "@tanstack/react-router";
import { act, fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
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

it("a page of something else begins anew, and the same page of the same stays", async () => {
  const root = createRootRoute();
  const One = () => {
    const [isOpen, setOpen] = useState(false);
    return (
      <button
        type="button"
        onClick={() => {
          setOpen(true);
        }}
      >
        {isOpen ? "Open" : "Closed"}
      </button>
    );
  };
  const page = createRoute({ getParentRoute: () => root, path: "/payments/$paymentId", component: One });
  const router = createRouter({
    routeTree: root.addChildren([page]),
    history: createMemoryHistory({ initialEntries: ["/payments/one"] }),
    ...PAGES_OF_BOTH,
  });
  render(
    <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
      <RouterProvider router={router} />
    </MantineProvider>,
  );
  fireEvent.click(await screen.findByRole("button", { name: "Closed" }));
  const goTo = (href: string) => act(() => router.navigate({ href }));
  await goTo("/payments/one?page=2");
  expect(screen.getByRole("button").textContent).toBe("Open");
  await goTo("/payments/two");
  expect(screen.getByRole("button").textContent).toBe("Closed");
});
