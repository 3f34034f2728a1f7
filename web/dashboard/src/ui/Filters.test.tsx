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
import { afterEach, expect, it, vi } from "vitest";

import { DaysFilter, Filters, SelectFilter, TextFilter } from "./Filters";
import { useListSearch } from "./search";
import { theme } from "./theme";

const themed = (children: React.ReactNode) => (
  <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
    {children}
  </MantineProvider>
);

afterEach(() => {
  vi.useRealTimers();
});

const field = () => screen.getByRole<HTMLInputElement>("textbox", { name: "Order" });
const type = (text: string) => fireEvent.change(field(), { target: { value: text } });

it("a letter that is typed before the address has the ones before stays", async () => {
  vi.useFakeTimers();
  const asked: string[] = [];
  let arrive: (value: string | undefined) => void = () => undefined;
  function Page() {
    const [value, setValue] = useState<string>();
    arrive = setValue;
    return <TextFilter label="Order" value={value} onFilter={(typed) => asked.push(typed)} />;
  }
  render(themed(<Page />));
  type("a");
  expect(asked).toEqual(["a"]);
  type("ab");
  await act(() => vi.advanceTimersByTimeAsync(60));
  expect(asked).toEqual(["a", "ab"]);
  type("abc");
  for (const late of ["a", "ab"]) {
    act(() => {
      arrive(late);
    });
    expect(field().value).toBe("abc");
  }
  await act(() => vi.advanceTimersByTimeAsync(60));
  act(() => {
    arrive("abc");
  });
  expect([field().value, asked]).toEqual(["abc", ["a", "ab", "abc"]]);
  // What nobody asked for here comes from elsewhere: a link, going back, clearing the filters.
  for (const other of ["a", undefined, "zzz"]) {
    act(() => {
      arrive(other);
    });
    expect(field().value).toBe(other ?? "");
  }
});

it("what is typed goes into the address, and what the address says goes into the field", async () => {
  const root = createRootRoute();
  function Page() {
    const search = useListSearch(["orderId"]);
    return (
      <>
        <TextFilter
          label="Order"
          value={search.filters.orderId}
          onFilter={(orderId) => {
            search.filter({ orderId });
          }}
        />
        <button type="button" onClick={search.clear}>
          Clear
        </button>
      </>
    );
  }
  const page = createRoute({ getParentRoute: () => root, path: "/", component: Page });
  const history = createMemoryHistory({ initialEntries: ["/?orderId=%22123%22"] });
  const router = createRouter({ routeTree: root.addChildren([page]), history });
  await router.load();
  render(themed(<RouterProvider router={router} />));
  await screen.findByRole("textbox");
  expect(field().value).toBe("123");
  for (const typed of ["1234", "12345", "12345 ", "12345 6"]) type(typed);
  await vi.waitFor(() => {
    expect(history.location.search).toBe("?orderId=12345+6");
  });
  expect(field().value).toBe("12345 6");
  fireEvent.click(screen.getByRole("button", { name: "Clear" }));
  await vi.waitFor(() => {
    expect(field().value).toBe("");
  });
});

it("what the address says is shown where it is not offered, and can be taken away", () => {
  const asked: string[] = [];
  const options = [{ value: "polygon", label: "Polygon" }];
  const shown = (value: string | undefined) =>
    themed(<SelectFilter label="Chain" value={value} options={options} onFilter={(chosen) => asked.push(chosen)} />);
  const { rerender, container } = render(shown("polygon"));
  const chosen = () => screen.getByRole<HTMLInputElement>("combobox", { name: "Chain" }).value;
  expect(chosen()).toBe("Polygon");
  rerender(shown("base"));
  expect(chosen()).toBe("base");
  const clear = container.querySelector("button");
  if (clear === null) throw new Error("It cannot be taken away.");
  fireEvent.click(clear);
  expect(asked).toEqual([""]);
  rerender(shown(undefined));
  expect(chosen()).toBe("");
});

it("says on its button how many filters leave something out, and opens by it", () => {
  const nothing = () => undefined;
  const options = [{ value: "usd", label: "USD" }];
  const shown = (orderId?: string, from?: string) =>
    themed(
      <Filters>
        <TextFilter label="Order" value={orderId} onFilter={nothing} />
        <SelectFilter label="Chain" value={undefined} options={options} onFilter={nothing} />
        <SelectFilter isRequired label="Currency" value="usd" options={options} onFilter={nothing} />
        <DaysFilter from={from} until={undefined} onFilter={nothing} />
      </Filters>,
    );
  const { rerender } = render(shown());
  const button = () => screen.getByRole("button", { name: /^Filters/ });
  expect([button().textContent, button().getAttribute("aria-expanded")]).toEqual(["Filters", "false"]);
  rerender(shown("A-1", "2026-01-31"));
  expect(button().textContent).toBe("Filters2");
  rerender(shown("A-1"));
  expect(button().textContent).toBe("Filters1");
  fireEvent.click(button());
  expect(button().getAttribute("aria-expanded")).toBe("true");
  expect(screen.getByRole("search").dataset.open).toBe("true");
});
