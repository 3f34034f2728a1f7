import { fireEvent, screen, waitFor } from "@testing-library/react";
import { useState } from "react";
import { expect, it, vi } from "vitest";

import { ApiError } from "../api/errors";
import { show } from "../testing/render";

import { Confirm } from "./Confirm";
import { Page } from "./Page";

it("is closed by nothing while it sends, and by everything else before and after", async () => {
  const onClose = vi.fn();
  const answers: ((error: Error) => void)[] = [];
  const Asking = () => (
    <Page title="Payout">
      <Confirm
        title="Pay this?"
        act="Pay"
        onConfirm={() => new Promise((_, refuse) => answers.push(refuse))}
        onClose={onClose}
      >
        <p>It is sent.</p>
      </Confirm>
    </Page>
  );
  await show(Asking, { path: "payouts", answers: {} });
  const dialog = await screen.findByRole("dialog");
  const outside = () => {
    const overlay = document.querySelector<HTMLElement>(".mantine-Modal-overlay");
    if (overlay === null) throw new Error("Nothing is outside of it.");
    fireEvent.click(overlay);
  };
  const tryAll = () => {
    fireEvent.keyDown(dialog, { key: "Escape" });
    outside();
    fireEvent.click(screen.getByRole("button", { name: "Cancel" }));
    fireEvent.click(screen.getByRole("button", { name: "Close" }));
  };
  tryAll();
  expect(onClose).toHaveBeenCalledTimes(4);
  fireEvent.click(screen.getByRole("button", { name: "Pay" }));
  await waitFor(() => {
    expect(answers).toHaveLength(1);
  });
  tryAll();
  expect(onClose).toHaveBeenCalledTimes(4);
  answers[0]?.(new ApiError(0, "OFFLINE", "No answer."));
  expect(await screen.findByText("OFFLINE")).toBeTruthy();
  expect(screen.getByRole<HTMLButtonElement>("button", { name: "Pay" }).disabled).toBe(false);
  tryAll();
  expect(onClose).toHaveBeenCalledTimes(8);
});

it("gives the focus back to what had it, and to the page where that is gone with what was done", async () => {
  const Rows = () => {
    const [isThere, setThere] = useState(true);
    const [isOpen, setOpen] = useState(false);
    const close = () => {
      setOpen(false);
    };
    return (
      <main id="main" tabIndex={-1}>
        <Page title="Payouts">
          {isThere && (
            <button
              type="button"
              onClick={() => {
                setOpen(true);
              }}
            >
              Cancel it
            </button>
          )}
          {isOpen && (
            <Confirm
              title="Cancel this?"
              act="Do it"
              dismiss="Leave it"
              onConfirm={() => {
                setThere(false);
                return Promise.resolve();
              }}
              onClose={close}
            >
              <p>It is gone then.</p>
            </Confirm>
          )}
        </Page>
      </main>
    );
  };
  await show(Rows, { path: "payouts", answers: {} });
  const begin = async (press: string) => {
    const button = screen.getByRole("button", { name: "Cancel it" });
    button.focus();
    fireEvent.click(button);
    fireEvent.click(await screen.findByRole("button", { name: press }));
    await waitFor(() => {
      expect(screen.queryByRole("dialog")).toBeNull();
    });
    return button;
  };
  const button = await begin("Leave it");
  await waitFor(() => {
    expect(document.activeElement).toBe(button);
  });
  await begin("Do it");
  await waitFor(() => {
    expect(document.activeElement).toBe(screen.getByRole("main"));
  });
});

it("does not offer to do it again where something else was done before under its key", async () => {
  const refused = new ApiError(409, "IDEMPOTENCY_KEY_REUSED", "Used.");
  const Asking = () => (
    <Page title="Payout">
      <Confirm title="Pay this?" act="Pay" onConfirm={() => Promise.reject(refused)} onClose={() => undefined}>
        <p>It is sent.</p>
      </Confirm>
    </Page>
  );
  await show(Asking, { path: "payouts", answers: {} });
  fireEvent.click(await screen.findByRole("button", { name: "Pay" }));
  expect(await screen.findByText(/What you sent before was carried out/)).toBeTruthy();
  expect(screen.getByRole<HTMLButtonElement>("button", { name: "Pay" }).disabled).toBe(true);
});

it.each([
  ["of an act with a field", false, true, "Reason"],
  ["of a dangerous act with a field", true, true, "Reason"],
  ["of an act", false, false, "Do it"],
  ["of a dangerous act", true, false, "Cancel"],
] as const)("begins for whoever works with keys with what comes first: %s", async (_, isDangerous, hasField, name) => {
  const Asking = () => (
    <Page title="Payouts">
      <Confirm
        title="Do this?"
        act="Do it"
        isDangerous={isDangerous}
        onConfirm={() => Promise.resolve()}
        onClose={() => undefined}
      >
        {hasField && <input aria-label="Reason" />}
      </Confirm>
    </Page>
  );
  await show(Asking, { path: "payouts", answers: {} });
  await screen.findByRole("dialog");
  await waitFor(() => {
    const now = document.activeElement;
    expect(now?.getAttribute("aria-label") ?? now?.textContent).toBe(name);
  });
});
