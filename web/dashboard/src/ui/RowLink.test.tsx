import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  Outlet,
  RouterProvider,
} from "@tanstack/react-router";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { RowLink } from "./RowLink";

/** Show a link to a payment, in an app below a path. */
async function link(children: React.ReactNode = "pay_1") {
  const preload = vi.fn();
  const root = createRootRoute({ component: Outlet });
  const List = () => (
    <RowLink to="/payments/pay_1" className="first">
      {children}
    </RowLink>
  );
  const list = createRoute({ getParentRoute: () => root, path: "/payments", component: List });
  const page = createRoute({
    getParentRoute: () => root,
    path: "/payments/$paymentId",
    beforeLoad: preload,
    component: () => <h1>Payment</h1>,
  });
  const history = createMemoryHistory({ initialEntries: ["/dashboard/payments"] });
  const router = createRouter({
    routeTree: root.addChildren([list, page]),
    history,
    basepath: "/dashboard",
    defaultPreload: "intent",
  });
  await router.load();
  render(<RouterProvider router={router} />);
  const navigate = vi.spyOn(router, "navigate");
  return { preload, navigate, history, row: await screen.findByRole<HTMLAnchorElement>("link") };
}

it("leads where the router's own links do, without loading the page anew", async () => {
  const { history, row } = await link();
  expect(row.getAttribute("href")).toBe("/dashboard/payments/pay_1");
  expect(fireEvent.click(row)).toBe(false);
  expect(await screen.findByRole("heading", { name: "Payment" })).toBeTruthy();
  expect(history.location.pathname).toBe("/dashboard/payments/pay_1");
});

it("leaves to the browser what opens another tab, and what something inside has taken", async () => {
  const taken = (
    <span
      onClick={(event) => {
        event.preventDefault();
      }}
    >
      Copy
    </span>
  );
  const { navigate, row } = await link(taken);
  for (const how of [{ ctrlKey: true }, { metaKey: true }, { shiftKey: true }, { button: 1 }]) {
    expect(fireEvent.click(row, how)).toBe(true);
  }
  fireEvent.click(screen.getByText("Copy"));
  expect(navigate).not.toHaveBeenCalled();
});

it("has the page not come where the pointer only passes", async () => {
  const { preload, row } = await link();
  fireEvent.mouseEnter(row);
  fireEvent.mouseLeave(row);
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(preload).not.toHaveBeenCalled();
});

it.each(["mouseEnter", "focus", "touchStart"] as const)("has the page come on %s", async (event) => {
  const { preload, row } = await link();
  fireEvent[event](row);
  await waitFor(() => {
    expect(preload).toHaveBeenCalled();
  });
});
