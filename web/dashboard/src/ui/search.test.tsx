import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from "@tanstack/react-router";
import { act, render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { useListSearch, type ListSearch } from "./search";

const FILTERS = ["status", "chain", "sort"] as const;
type Name = (typeof FILTERS)[number];

/** Show a list at an address; `seen` has what each rendering was given. */
async function list(at: string, ahead: (page: number, filters: Partial<Record<Name, string>>) => void) {
  const root = createRootRoute();
  const seen: ListSearch<Name>[] = [];
  function Page() {
    const search = useListSearch(FILTERS, undefined, ahead);
    seen.push(search);
    return <p>{`${search.filters.status ?? "any"} of page ${String(search.page)}`}</p>;
  }
  const page = createRoute({ getParentRoute: () => root, path: "/", component: Page });
  const history = createMemoryHistory({ initialEntries: [at] });
  const router = createRouter({ routeTree: root.addChildren([page]), history });
  await router.load();
  render(<RouterProvider router={router} />);
  await screen.findByText(/of page/);
  return { history, seen };
}

it("keeps a filter that was set while the page does not show it yet", async () => {
  const { history, seen } = await list("/?page=3&other=x", vi.fn());
  const [first] = seen;
  act(() => {
    first?.set.status("paid");
    first?.set.chain("base");
  });
  expect(await screen.findByText("paid of page 1")).toBeTruthy();
  expect(history.location.search).toBe("?other=x&status=paid&chain=base");
});

it("tells what is gone to before it is shown, and acts by the same functions all the time", async () => {
  const ahead = vi.fn(() => {
    expect(screen.getByText("paid of page 1")).toBeTruthy();
  });
  const { seen } = await list("/?status=paid", ahead);
  act(() => {
    seen[0]?.goTo(2);
  });
  expect(await screen.findByText("paid of page 2")).toBeTruthy();
  expect(ahead.mock.calls).toEqual([[2, { status: "paid" }]]);
  const [first, last] = [seen[0], seen.at(-1)];
  expect([last?.set, last?.filter, last?.goTo]).toEqual([first?.set, first?.filter, first?.goTo]);
});
