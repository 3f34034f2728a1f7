import { MantineProvider } from "@mantine/core";
import { act, fireEvent, render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { show } from "../testing/render";

import { useAbove } from "./above";
import { Page } from "./Page";
import { Palette, type Command } from "./Palette";
import { matching } from "./PaletteSearch";
import { theme } from "./theme";

const command = (label: string, keywords = ""): Command => ({ id: label, label, keywords, run: () => undefined });
const commands = [command("New payment", "invoice"), command("Payments"), command("Sign out")];

it("finds commands by every word, in their names and other words for them", () => {
  expect(matching(commands, "pay").map((one) => one.label)).toEqual(["Payments", "New payment"]);
  expect(matching(commands, "invoice new").map((one) => one.label)).toEqual(["New payment"]);
  expect(matching(commands, "nothing like it")).toEqual([]);
});

it("shows all where nothing was typed", () => {
  expect(matching(commands, " ")).toHaveLength(3);
});

it("is typed into at once, and gives the focus back when it is closed", async () => {
  const Anywhere = () => (
    <Page title="Payments">
      <button type="button">Refund</button>
      <Palette commands={commands} />
    </Page>
  );
  await show(Anywhere, { path: "payments", answers: {} });
  const button = screen.getByRole("button", { name: "Refund" });
  button.focus();
  fireEvent.keyDown(button, { key: "k", code: "KeyK", ctrlKey: true });
  // Nothing is waited for: the next key that is pressed must be the field's.
  const field = screen.getByRole("combobox");
  expect(document.activeElement).toBe(field);
  fireEvent.change(field, { target: { value: "new" } });
  expect(screen.getAllByRole("option").map((one) => one.textContent)).toEqual(["New payment"]);
  fireEvent.keyDown(field, { key: "Escape" });
  expect(screen.queryByRole("combobox")).toBeNull();
  expect(document.activeElement).toBe(button);
});

it("stays away while something stands above the page, where nobody would see it", async () => {
  const Above = () => {
    useAbove();
    return null;
  };
  await show(
    () => (
      <Page title="Payments">
        <Palette commands={commands} />
        <Above />
      </Page>
    ),
    { path: "payments", answers: {} },
  );
  fireEvent.keyDown(document.body, { key: "k", code: "KeyK", ctrlKey: true });
  expect(screen.queryByRole("combobox")).toBeNull();
});

/** Open one whose search has not come: its parts are as on a page that was loaded just now. */
async function openAnew(run: () => void) {
  vi.resetModules();
  const { Palette: Anew } = await import("./Palette");
  render(
    <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
      <Anew commands={[{ ...command("Payments"), run }]} />
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole("button"));
  expect(screen.queryByRole("combobox")).toBeNull();
  return screen.getByRole("textbox");
}

it("runs what Enter was pressed for before the search had come, once", async () => {
  const run = vi.fn();
  const field = await openAnew(run);
  fireEvent.change(field, { target: { value: "pay" } });
  fireEvent.keyDown(field, { key: "Enter" });
  await vi.waitFor(() => {
    expect(run).toHaveBeenCalledOnce();
  });
  expect(screen.queryByRole("combobox")).toBeNull();
  expect(screen.queryByRole("textbox")).toBeNull();
});

it("does not run what was typed on after Enter", async () => {
  const run = vi.fn();
  const field = await openAnew(run);
  fireEvent.keyDown(field, { key: "Enter" });
  fireEvent.change(field, { target: { value: "pay" } });
  expect(await screen.findByRole("combobox")).toHaveProperty("value", "pay");
  await act(() => Promise.resolve());
  expect(run).not.toHaveBeenCalled();
});

it("is closed by a click outside before the search has come", async () => {
  const run = vi.fn();
  await openAnew(run);
  fireEvent.click(screen.getByRole("presentation"));
  expect(screen.queryByRole("textbox")).toBeNull();
});

it("leaves Enter to an input method that composes what is typed", async () => {
  const run = vi.fn();
  const field = await openAnew(run);
  fireEvent.keyDown(field, { key: "Enter", isComposing: true });
  const found = await screen.findByRole("combobox");
  expect(run).not.toHaveBeenCalled();
  fireEvent.keyDown(found, { key: "Enter", isComposing: true });
  expect(run).not.toHaveBeenCalled();
  fireEvent.keyDown(found, { key: "Enter" });
  expect(run).toHaveBeenCalledOnce();
});
