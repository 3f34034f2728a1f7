import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { api, unwrap } from "../merchant/api";
import { PROJECT, refused, show } from "../testing/render";

import { Confirm } from "./Confirm";
import { Page } from "./Page";

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
