import { MantineProvider } from "@mantine/core";
import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";

import { Copyable } from "./Copyable";
import { loadParts } from "./onDemand";
import { theme } from "./theme";

beforeAll(loadParts);

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function show(): HTMLElement {
  render(
    <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
      <Copyable text="0x5290">short</Copyable>
    </MantineProvider>,
  );
  return screen.getByRole("button");
}

const after = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

it("says more while the pointer rests on it, and not when it only passes", async () => {
  const button = show();
  fireEvent.pointerEnter(button);
  await after(200);
  fireEvent.pointerLeave(button);
  await after(1_000);
  expect(screen.queryByRole("tooltip")).toBeNull();
  fireEvent.pointerEnter(button);
  await after(300);
  const hint = screen.getByRole("tooltip");
  expect(hint.textContent).toBe("0x5290");
  expect(hint.contains(document.getElementById(button.getAttribute("aria-describedby") ?? ""))).toBe(true);
  fireEvent.pointerLeave(button);
  expect(screen.queryByRole("tooltip")).toBeNull();
  expect(button.getAttribute("aria-describedby")).toBeNull();
});

it("says it to whoever comes by keyboard, until Escape is pressed", () => {
  const button = show();
  vi.spyOn(button, "matches").mockReturnValue(true); // jsdom does not tell how somebody came
  act(() => {
    button.focus();
  });
  expect(screen.getByRole("tooltip").textContent).toBe("0x5290");
  fireEvent.keyDown(button, { key: "Escape" });
  expect(screen.queryByRole("tooltip")).toBeNull();
  expect(document.activeElement).toBe(button);
});

it("says it to whoever taps, until the next touch, and not to whoever only scrolls over it", async () => {
  const button = show();
  fireEvent.pointerEnter(button, { pointerType: "touch" });
  await after(1_000);
  fireEvent.pointerLeave(button, { pointerType: "touch" });
  expect(screen.queryByRole("tooltip")).toBeNull();
  fireEvent.pointerUp(button, { pointerType: "touch" });
  fireEvent.pointerLeave(button, { pointerType: "touch" });
  expect(screen.getByRole("tooltip").textContent).toBe("0x5290");
  fireEvent.pointerDown(document.body, { pointerType: "touch" });
  expect(screen.queryByRole("tooltip")).toBeNull();
});
