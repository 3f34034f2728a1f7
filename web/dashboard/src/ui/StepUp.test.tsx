import { MantineProvider } from "@mantine/core";
import { fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { api, merchantSession, unwrap } from "../merchant/api";
import { json, PROJECT, refused, show } from "../testing/render";

import { Confirm } from "./Confirm";
import { Page } from "./Page";
import { StepUpDialog } from "./StepUpDialog";
import { theme } from "./theme";

const CANCEL = `/api/dashboard/projects/${PROJECT}/wallet/payouts/out_1/cancel`;

const onClose = vi.fn();

function Cancelling() {
  return (
    <Page title="Payout">
      <Confirm
        title="Cancel this payout?"
        act="Do it"
        typed="yes"
        onConfirm={() => {
          const params = { path: { projectId: PROJECT, payoutId: "out_1" } };
          return unwrap(api.POST("/api/dashboard/projects/{projectId}/wallet/payouts/{payoutId}/cancel", { params }));
        }}
        onClose={onClose}
      >
        <p>It is not sent.</p>
      </Confirm>
    </Page>
  );
}

it("closes alone by Escape: the act below says what it lacks, and keeps what was typed", async () => {
  await show(Cancelling, { path: "payouts", answers: { [`POST ${CANCEL}`]: () => refused(403, "STEP_UP_REQUIRED") } });
  fireEvent.change(screen.getByLabelText("Type yes to confirm"), { target: { value: "yes" } });
  fireEvent.click(screen.getByRole("button", { name: "Do it" }));
  const asked = await screen.findByRole("dialog", { name: "Confirm that it is you" });
  fireEvent.keyDown(asked, { key: "Escape" });
  await waitFor(() => {
    expect(screen.queryByRole("dialog", { name: "Confirm that it is you" })).toBeNull();
  });
  expect(onClose).not.toHaveBeenCalled();
  expect(await screen.findByText("STEP_UP_REQUIRED")).toBeTruthy();
  expect(screen.getByLabelText<HTMLInputElement>("Type yes to confirm").value).toBe("yes");
});

it("ends the act with what went wrong where the dialog does not come", async () => {
  vi.resetModules();
  vi.doMock("./StepUpDialog", () => ({
    get StepUpDialog() {
      throw new TypeError("Lost");
    },
  }));
  const { authorized } = await import("../api/client");
  const { StepUp } = await import("./StepUp");
  render(<StepUp />);
  merchantSession.begin({ accessToken: "token", expiresIn: 900 });
  const send = authorized(merchantSession, () => Promise.resolve(refused(403, "STEP_UP_REQUIRED")));
  const request = send(new Request("https://gateway.example/api"));
  // It was not done: no page has to say that it may have been.
  await expect(request).rejects.toMatchObject({ status: 403, code: "OFFLINE" });
  expect(screen.queryByRole("alert")).toBeNull();
  vi.doUnmock("./StepUpDialog");
});

it("takes a recovery code, which has letters, where the phone is not at hand", async () => {
  const codes: unknown[] = [];
  let isSteppedUp = false;
  await show(Cancelling, {
    path: "payouts",
    answers: { [`POST ${CANCEL}`]: () => (isSteppedUp ? json({ success: true }) : refused(403, "STEP_UP_REQUIRED")) },
  });
  const others = globalThis.fetch;
  vi.stubGlobal("fetch", async (request: Request | string, init?: { readonly body: string }) => {
    if (request !== "/api/auth/step-up") return await others(request);
    codes.push(JSON.parse(init?.body ?? ""));
    isSteppedUp = true;
    return json({ success: true });
  });
  fireEvent.change(screen.getByLabelText("Type yes to confirm"), { target: { value: "yes" } });
  fireEvent.click(screen.getByRole("button", { name: "Do it" }));
  const asked = within(await screen.findByRole("dialog", { name: "Confirm that it is you" }));
  fireEvent.click(asked.getByRole("button", { name: "Use a recovery code" }));
  const code = asked.getByLabelText<HTMLInputElement>(/^Recovery code/);
  expect(["", "text"]).toContain(code.inputMode || "");
  fireEvent.change(code, { target: { value: " 4k2m7-qvx4d " } });
  onClose.mockClear();
  fireEvent.click(asked.getByRole("button", { name: "Confirm" }));
  await waitFor(() => {
    expect(onClose).toHaveBeenCalled();
  });
  expect(codes).toEqual([{ totpCode: "4k2m7-qvx4d" }]);
});

it("is empty when a code is asked for again before it has closed", async () => {
  const dialog = (isOpen: boolean) => (
    // Not as in tests: it takes its time to close.
    <MantineProvider theme={theme} withCssVariables={false} withGlobalClasses={false}>
      <StepUpDialog isOpen={isOpen} onCode={() => Promise.resolve()} onClose={() => undefined} />
    </MantineProvider>
  );
  const { rerender } = render(dialog(true));
  const digit = () => screen.getByLabelText<HTMLInputElement>("Digit 1");
  fireEvent.change(await screen.findByLabelText("Digit 1"), { target: { value: "7" } });
  expect(digit().value).toBe("7");
  rerender(dialog(false));
  expect(digit().value).toBe("7");
  rerender(dialog(true));
  expect(digit().value).toBe("");
});

it("has the focus in the first digit, and again after a wrong code", async () => {
  await show(Cancelling, { path: "payouts", answers: { [`POST ${CANCEL}`]: () => refused(403, "STEP_UP_REQUIRED") } });
  const others = globalThis.fetch;
  vi.stubGlobal("fetch", async (request: Request | string) =>
    request === "/api/auth/step-up" ? refused(401, "INVALID_CODE") : await others(request),
  );
  fireEvent.change(screen.getByLabelText("Type yes to confirm"), { target: { value: "yes" } });
  fireEvent.click(screen.getByRole("button", { name: "Do it" }));
  const asked = await screen.findByRole("dialog", { name: "Confirm that it is you" });
  const [first] = within(asked).getAllByRole("textbox");
  await waitFor(() => {
    expect(document.activeElement).toBe(first);
  });
  within(asked).getByRole("button", { name: "Cancel" }).focus();
  for (const [index, digit] of within(asked).getAllByRole("textbox").entries()) {
    fireEvent.change(digit, { target: { value: String(index + 1) } });
  }
  fireEvent.click(within(asked).getByRole("button", { name: "Confirm" }));
  expect(await within(asked).findByText("INVALID_CODE")).toBeTruthy();
  await waitFor(() => {
    expect(document.activeElement).toBe(within(asked).getAllByRole("textbox")[0]);
  });
});
