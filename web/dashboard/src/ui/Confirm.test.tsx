import { fireEvent, screen, waitFor } from "@testing-library/react";
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
