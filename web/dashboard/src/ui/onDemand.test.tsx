import { MantineProvider } from "@mantine/core";
import { act, fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { onDemand } from "./onDemand";
import { theme } from "./theme";

interface Said {
  readonly words: string;
}

function Part({ words }: Said) {
  return <p>{words}, here</p>;
}

function Meanwhile({ words }: Said) {
  return <p>{words}, on its way</p>;
}

/** Whether nothing comes that is asked for. */
let isLost = false;
const load = () => (isLost ? Promise.reject(new TypeError("Lost")) : Promise.resolve(Part));

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  isLost = false; // other tests load all parts there are
  vi.useRealTimers();
});

const wait = () => act(() => vi.advanceTimersByTimeAsync(0));

function show(Lazy: ReturnType<typeof onDemand<Said>>) {
  const Page = () => {
    const [isAsked, setAsked] = useState(false);
    return (
      <>
        <button
          type="button"
          onClick={() => {
            setAsked(true);
          }}
        >
          Open
        </button>
        {isAsked && <Lazy words="A part" />}
      </>
    );
  };
  render(
    <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
      <Page />
    </MantineProvider>,
  );
  return screen.getByRole("button", { name: "Open" });
}

it("comes by itself once the page has had its time, and is there at once when it is asked for", async () => {
  const loading = vi.fn(load);
  const button = show(onDemand(loading, { meanwhile: Meanwhile }));
  expect(loading).not.toHaveBeenCalled();
  await act(() => vi.advanceTimersByTimeAsync(2_000));
  expect(loading).toHaveBeenCalledOnce();
  fireEvent.click(button);
  expect(screen.getByText("A part, here")).toBeTruthy();
});

it("is asked for again where it did not come, and what stands for it stays meanwhile", async () => {
  isLost = true;
  const button = show(onDemand(load, { meanwhile: Meanwhile }));
  button.focus();
  fireEvent.click(button);
  await wait();
  expect(screen.getByText("A part, on its way")).toBeTruthy();
  expect(screen.getByRole("alert").textContent).toContain("OFFLINE");
  isLost = false;
  fireEvent.click(screen.getByRole("button", { name: "Try again" }));
  await wait();
  expect(screen.getByText("A part, here")).toBeTruthy();
  expect(screen.queryByRole("alert")).toBeNull();
  expect(document.activeElement).toBe(button);
});

it("says nothing where the page is whole without it", async () => {
  isLost = true;
  fireEvent.click(show(onDemand(load, { isDispensable: true })));
  await wait();
  expect(screen.queryByRole("alert")).toBeNull();
});
