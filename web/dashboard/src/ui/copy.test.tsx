import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";

import { show } from "../testing/render";

import { Confirm } from "./Confirm";
import { Copyable } from "./Copyable";
import { CopyButton } from "./CopyButton";
import { Page } from "./Page";

const ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7";
const LINES = '[tokens.EURX]\ncontract = "0x52"';

function Shown() {
  return (
    <Page title="Copies">
      <Copyable text={ADDRESS}>0x52…9EE7</Copyable>
      <CopyButton text={LINES} of="Lines" />
    </Page>
  );
}

/** Without https browsers have no clipboard for scripts; here they have none anyway. */
async function showWith(execCommand: (command: string) => boolean): Promise<void> {
  Object.defineProperty(document, "execCommand", { value: execCommand, configurable: true });
  await show(Shown, { path: "copies", answers: {} });
}

afterEach(() => {
  Reflect.deleteProperty(document, "execCommand");
});

describe.each([
  ["0x52…9EE7", ADDRESS],
  ["Copy it: Lines", LINES],
])("without a clipboard for scripts, %s", (name, text) => {
  const button = () => screen.getByRole("button", { name: new RegExp(`^${name}`) });

  it("is copied as a selection, of which nothing is left", async () => {
    const copied: (string | undefined)[] = [];
    await showWith(() => {
      copied.push(getSelection()?.toString());
      return true;
    });
    fireEvent.click(button());
    expect(await screen.findByText("Copied", { selector: "[role=status]" })).toBeTruthy();
    expect(copied).toEqual([text]);
    expect(document.querySelector("body > pre")).toBeNull();
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  it("says that it was not copied where the browser does not do that either, and is there to be selected", async () => {
    await showWith(() => false);
    fireEvent.click(button());
    const dialog = await screen.findByRole("dialog", { name: "The browser did not copy it" });
    const field = within(dialog).getByRole<HTMLTextAreaElement>("textbox", { name: "Select and copy it here" });
    expect([field.value, field.readOnly]).toEqual([text, true]);
    fireEvent.focus(field);
    expect([field.selectionStart, field.selectionEnd]).toEqual([0, text.length]);
    expect(screen.queryByText("Copied")).toBeNull();
    fireEvent.click(within(dialog).getByRole("button", { name: "Close" }));
    await waitFor(() => {
      expect(screen.queryByRole("dialog")).toBeNull();
    });
  });
});

it("a clipboard that refuses is as none", async () => {
  const writeText = vi.fn(() => Promise.reject(new DOMException("Denied.", "NotAllowedError")));
  vi.stubGlobal("navigator", Object.assign(Object.create(navigator) as Navigator, { clipboard: { writeText } }));
  await showWith(() => false);
  fireEvent.click(screen.getByRole("button", { name: /^Copy it/ }));
  expect(await screen.findByRole("dialog", { name: "The browser did not copy it" })).toBeTruthy();
  expect(writeText).toHaveBeenCalledWith(LINES);
});

it.each([
  ["lacks what copies a selection", undefined],
  [
    "forbids it",
    () => {
      throw new Error("Forbidden.");
    },
  ],
])("nothing of a secret is left in the page where a browser %s", async (_, execCommand) => {
  await showWith(execCommand as () => boolean);
  fireEvent.click(screen.getByRole("button", { name: /^Copy it/ }));
  expect(await screen.findByRole("dialog", { name: "The browser did not copy it" })).toBeTruthy();
  expect(document.querySelector("body > pre")).toBeNull();
});

it("Escape closes it alone, and whoever works with keys goes on in the dialog below it", async () => {
  const onClose = vi.fn();
  function Asking() {
    return (
      <Page title="Payouts">
        <Confirm title="Pay out?" act="Pay" onConfirm={() => Promise.resolve()} onClose={onClose}>
          <Copyable text={ADDRESS}>0x52…9EE7</Copyable>
        </Confirm>
      </Page>
    );
  }
  Object.defineProperty(document, "execCommand", { value: () => false, configurable: true });
  await show(Asking, { path: "payouts", answers: {} });
  const button = await screen.findByRole("button", { name: /^0x52…9EE7/ });
  for (const where of ["Select and copy it here", "Close"]) {
    fireEvent.click(button); // a browser may not give the focus to a button that is clicked
    const dialog = await screen.findByRole("dialog", { name: "The browser did not copy it" });
    const inside = within(dialog).getByLabelText(where);
    inside.focus();
    fireEvent.keyDown(inside, { key: "Escape" });
    await waitFor(() => {
      expect(screen.queryByRole("dialog", { name: "The browser did not copy it" })).toBeNull();
    });
    expect(onClose).not.toHaveBeenCalled();
    await waitFor(() => {
      expect(document.activeElement).toBe(button);
    });
  }
  await waitFor(() => {
    fireEvent.keyDown(button, { key: "Escape" });
    expect(onClose).toHaveBeenCalled();
  });
});
