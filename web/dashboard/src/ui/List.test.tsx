import { MantineProvider } from "@mantine/core";
import { act, render, screen, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, it, vi } from "vitest";

import { nothing, one, show } from "../testing/render";

import { List } from "./List";
import { None } from "./None";
import { Page } from "./Page";
import { Plain } from "./Plain";
import { theme } from "./theme";

it("does not say that there is nothing where it could not be read again", async () => {
  const refetch = vi.fn();
  const Empty = () => (
    <Page title="Payments">
      <List
        label="Payments"
        columns={[]}
        query={{
          data: { rows: [], ...nothing, isExact: true, hasNext: false },
          error: new TypeError("Failed to fetch"),
          isPlaceholderData: false,
          refetch,
        }}
        rowKey={String}
        empty="No payments yet"
        onPage={() => undefined}
      />
    </Page>
  );
  await show(Empty, { path: "payments", answers: {} });
  expect(await screen.findByText("OFFLINE")).toBeTruthy();
  expect(screen.queryByText("No payments yet")).toBeNull();
  screen.getByRole("button", { name: "Try again" }).click();
  await waitFor(() => {
    expect(refetch).toHaveBeenCalledOnce();
  });
});

it("says of a page behind the last one that nothing stands there, and leads back", async () => {
  const onPage = vi.fn();
  const Beyond = () => (
    <Page title="Payments">
      <List
        label="Payments"
        columns={[]}
        query={{
          data: { rows: [], ...nothing, page: 2, total: 3, isExact: true, hasNext: false },
          error: null,
          isPlaceholderData: false,
          refetch: vi.fn(),
        }}
        rowKey={String}
        empty="No payments yet"
        onPage={onPage}
      />
    </Page>
  );
  await show(Beyond, { path: "payments", answers: {} });
  expect(await screen.findByText("0–0 of 3")).toBeTruthy();
  expect(screen.queryByText("No payments yet")).toBeNull();
  screen.getByRole("button", { name: "Previous" }).click();
  expect(onPage).toHaveBeenCalledWith(1);
});

it("does not say that there is nothing while what was asked for is on its way", async () => {
  const data = { rows: [], ...nothing, isExact: true, hasNext: false };
  const Waiting = () => (
    <Page title="Payments">
      <List
        label="Payments"
        columns={[]}
        query={{ data, error: null, isPlaceholderData: true, refetch: vi.fn() }}
        rowKey={String}
        empty="No payments yet"
        onPage={() => undefined}
      />
    </Page>
  );
  await show(Waiting, { path: "payments", answers: {} });
  expect(screen.getByRole("status", { name: "Loading" })).toBeTruthy();
  expect(screen.queryByText("No payments yet")).toBeNull();
});

it("dims rows only where others are waited for longer than it takes to notice", () => {
  vi.useFakeTimers();
  try {
    const shown = (isPlaceholderData: boolean) => (
      <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
        <List
          label="Payments"
          columns={[{ id: "order", title: "Order", cell: (row: string) => row }]}
          query={{
            data: { rows: ["A-1"], ...one, isExact: true, hasNext: false },
            error: null,
            isPlaceholderData,
            refetch: vi.fn(),
          }}
          rowKey={String}
          empty="No payments yet"
          onPage={() => undefined}
        />
      </MantineProvider>
    );
    const { container, rerender } = render(shown(true));
    const isDimmed = () => container.querySelector("tbody")?.getAttribute("data-late");
    expect([screen.getByRole("table").ariaBusy, isDimmed()]).toEqual(["true", "false"]);
    act(() => {
      vi.advanceTimersByTime(1_000);
    });
    expect(isDimmed()).toBe("true");
    rerender(shown(false));
    expect([screen.getByRole("table").ariaBusy, isDimmed()]).toEqual(["false", "false"]);
    rerender(shown(true));
    expect(isDimmed()).toBe("false");
  } finally {
    vi.useRealTimers();
  }
});

it("leaves it at what is said of filters while others are asked for, unless that takes longer than is noticed", () => {
  vi.useFakeTimers();
  try {
    const shown = (isFiltered: boolean) => (
      <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
        <List
          label="Payments"
          columns={[]}
          query={{
            data: { rows: [], ...nothing, isExact: true, hasNext: false },
            error: null,
            isPlaceholderData: true,
            refetch: vi.fn(),
          }}
          rowKey={String}
          empty="None is like that"
          isFiltered={isFiltered}
          onPage={() => undefined}
        />
      </MantineProvider>
    );
    const { rerender } = render(shown(true));
    expect(screen.getByText("None is like that")).toBeTruthy();
    expect(screen.queryByRole("status", { name: "Loading" })).toBeNull();
    // Without filters there may be something: that there is nothing is said once it is known.
    rerender(shown(false));
    expect(screen.queryByText("None is like that")).toBeNull();
    rerender(shown(true));
    act(() => {
      vi.advanceTimersByTime(1_000);
    });
    expect(screen.queryByText("None is like that")).toBeNull();
    expect(screen.getByRole("status", { name: "Loading" })).toBeTruthy();
  } finally {
    vi.useRealTimers();
  }
});

it("leaves out of a card what there is nothing to say of, and nothing that only looks so", () => {
  const column = (id: string, cell: ReactNode) => ({ id, title: id, cell: () => cell });
  render(
    <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
      <Plain
        label="Payments"
        rows={["A-1"]}
        rowKey={String}
        columns={[column("none", <None />), column("mayNot", false), column("name", "\u2013")]}
      />
    </MantineProvider>,
  );
  const cells = [...screen.getByRole("table").querySelectorAll("td")];
  const isNothing = (cell: Element) => cell.matches('[data-none="true"], :has(> div > [data-none="true"]:only-child)');
  expect(cells.map(isNothing)).toEqual([true, true, false]);
});
