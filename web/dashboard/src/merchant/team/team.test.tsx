import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { DESCRIBED } from "../../testing/described";
import { json, show } from "../../testing/render";

import { TeamPage } from "./TeamPage";

const INVITATIONS = "/api/dashboard/invitations";

it("says what becomes of the link before an invitation is withdrawn", async () => {
  const { invitations } = DESCRIBED.merchant.example(INVITATIONS) as { readonly invitations: readonly object[] };
  let isWithdrawn = false;
  await show(TeamPage, {
    path: "team",
    permissions: ["self", "team.manage"],
    answers: {
      "GET /api/dashboard/members": { success: true, members: [] },
      [`GET ${INVITATIONS}`]: {
        success: true,
        invitations: [{ ...invitations[0], invitationId: "inv_1", name: "Grace" }],
      },
      [`DELETE ${INVITATIONS}/inv_1`]: () => {
        isWithdrawn = true;
        return json({ success: true });
      },
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Withdraw" }));
  const dialog = await screen.findByRole("dialog", { name: /Withdraw the invitation of .*Grace/ });
  expect(within(dialog).getByText(/Its link stops working at once/)).toBeTruthy();
  expect(isWithdrawn).toBe(false);
  fireEvent.click(within(dialog).getByRole("button", { name: "Withdraw" }));
  await waitFor(() => {
    expect(screen.queryByRole("dialog")).toBeNull();
  });
  expect(isWithdrawn).toBe(true);
});
