import { MantineProvider } from "@mantine/core";
import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";

import { Short } from "./Short";
import { theme } from "./theme";

const LONG = "order-2026-01-31-from-the-shop-in-the-north";

afterEach(() => {
  vi.restoreAllMocks();
});

/** Show a name of which so much is seen: jsdom lays nothing out. */
function show(text: string, isCut: boolean, inLink = false): HTMLElement {
  vi.spyOn(HTMLElement.prototype, "scrollWidth", "get").mockReturnValue(isCut ? 300 : 100);
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(100);
  render(
    <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
      <Short text={text} inLink={inLink} />
    </MantineProvider>,
  );
  return screen.getByText(text);
}

it("shows the whole of what is cut to whoever comes by keyboard or taps", async () => {
  const name = show(LONG, true);
  vi.spyOn(name, "matches").mockReturnValue(true);
  act(() => {
    name.focus();
  });
  // What shows it comes with the first one.
  expect((await screen.findByRole("tooltip")).textContent).toBe(LONG);
  act(() => {
    name.blur();
  });
  expect(screen.queryByRole("tooltip")).toBeNull();
  fireEvent.pointerUp(name, { pointerType: "touch" });
  expect(screen.getByRole("tooltip").textContent).toBe(LONG);
});

it("stops nobody at what is whole, or in a link that has the focus itself", () => {
  expect(show(LONG, false).tabIndex).toBe(-1);
  expect(show("A-1001", true).tabIndex).toBe(-1);
  expect(show(`${LONG}-2`, true, true).tabIndex).toBe(-1);
});
