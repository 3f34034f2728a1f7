import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { DESCRIBED } from "../../testing/described";
import { json, PROJECT, show } from "../../testing/render";

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

const MEMBERS = "/api/dashboard/members";
const ME = {
  memberId: "mem_1",
  name: "Ada",
  email: "ada@shop.example",
  role: "owner",
  version: 1,
  projectIds: null,
  hasTwoFactor: true,
};
const OTHER = { ...ME, memberId: "mem_2", name: "Bob", email: "bob@shop.example", role: "viewer", version: 7 };

async function open(answers: Readonly<Record<string, object>>): Promise<readonly Request[]> {
  return show(TeamPage, {
    path: "team",
    permissions: ["self", "team.manage", "team.recover"],
    member: { memberId: "mem_1" },
    answers: {
      [`GET ${MEMBERS}`]: { success: true, members: [ME, OTHER] },
      [`GET ${INVITATIONS}`]: { success: true, invitations: [] },
      ...answers,
    },
  });
}

const posted = (sent: readonly Request[]) =>
  sent.filter(({ method }) => method !== "GET").map(({ method, url }) => `${method} ${new URL(url).pathname}`);

it("lets somebody leave who has typed who they are", async () => {
  const sent = await open({
    [`POST ${MEMBERS}/leave`]: { success: true },
    "POST /api/auth/logout": { success: true },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Leave" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Leave this team?" }));
  const leave = dialog.getByRole<HTMLButtonElement>("button", { name: "Leave" });
  expect(leave.disabled).toBe(true);
  fireEvent.change(dialog.getByLabelText(/Type ada@shop.example/), { target: { value: "ada@shop.example" } });
  fireEvent.click(leave);
  await waitFor(() => {
    expect(posted(sent)[0]).toBe(`POST ${MEMBERS}/leave`);
  });
});

it("lets another member back in, and shows the link once", async () => {
  const sent = await open({
    [`POST ${MEMBERS}/mem_2/two-factor/reset`]: {
      success: true,
      link: "https://x.example/set-password#1",
      member: OTHER,
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Let back in" }));
  const dialog = within(await screen.findByRole("dialog", { name: /Let .*Bob.* back in/ }));
  fireEvent.click(dialog.getByRole("button", { name: "Let back in" }));
  expect(await screen.findByText("https://x.example/set-password#1")).toBeTruthy();
  expect(posted(sent)).toEqual([`POST ${MEMBERS}/mem_2/two-factor/reset`]);
});

it("opens chosen projects to a member, by the version that was read", async () => {
  const bodies: unknown[] = [];
  await open({
    [`PATCH ${MEMBERS}/mem_2`]: async (request: Request) => {
      bodies.push(await request.json());
      return json({ success: true, member: OTHER });
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "All" }));
  const dialog = within(await screen.findByRole("dialog", { name: /Which projects/ }));
  fireEvent.click(dialog.getByRole("checkbox", { name: "Nordlicht · Live" }));
  fireEvent.click(dialog.getByRole("button", { name: "Open these" }));
  await waitFor(() => {
    expect(bodies).toEqual([{ version: 7, projectIds: [PROJECT] }]);
  });
});
