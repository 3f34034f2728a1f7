/** A member whom somebody else changes while a dialog about them is open. */
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { BOB, ME, MEMBERS } from "../../testing/members";
import { json, PROJECT, refused, show, toldIn } from "../../testing/render";

import { TeamPage } from "./TeamPage";

/** Show the team, and return what is sent of Bob, and what changes Bob as somebody else. */
async function open(before: object) {
  const bodies: { readonly version: number }[] = [];
  let now: object & { readonly version: number } = { ...BOB, ...before };
  await show(TeamPage, {
    path: "team",
    permissions: ["self", "team.manage"],
    member: { memberId: "mem_1", role: "owner" },
    answers: {
      [`GET ${MEMBERS}`]: () => json({ success: true, members: [ME, now] }),
      "GET /api/dashboard/invitations": { success: true, invitations: [] },
      [`PATCH ${MEMBERS}/mem_2`]: async (request) => {
        const body = (await request.json()) as { readonly version: number };
        bodies.push(body);
        return body.version === now.version ? json({ success: true, member: now }) : refused(409, "VERSION_MISMATCH");
      },
    },
  });
  const changeMeanwhile = (changed: object) => {
    now = { ...now, ...changed, version: 8 };
    const later = Date.now() + 60_000;
    vi.spyOn(Date, "now").mockReturnValue(later);
    globalThis.dispatchEvent(new Event("visibilitychange"));
  };
  return { bodies, changeMeanwhile };
}

async function confirmTwice(dialog: HTMLElement, name: string): Promise<void> {
  fireEvent.click(within(dialog).getByRole("button", { name }));
  await within(dialog).findByText("VERSION_MISMATCH");
  fireEvent.click(within(dialog).getByRole("button", { name }));
  await waitFor(() => {
    expect(screen.queryByRole("dialog")).toBeNull();
  });
}

it("is not given back a project, unseen, that somebody else has just taken away", async () => {
  const { bodies, changeMeanwhile } = await open({ projectIds: [PROJECT, "prj_2"] });
  fireEvent.click(await screen.findByRole("button", { name: "2" }));
  const dialog = await screen.findByRole("dialog", { name: /Which projects/ });
  changeMeanwhile({ projectIds: [PROJECT] });
  expect(await screen.findByRole("button", { name: "Nordlicht", hidden: true })).toBeTruthy();
  await confirmTwice(dialog, "Open these");
  const projectIds = [PROJECT, "prj_2"];
  expect(bodies).toEqual([
    { version: 7, projectIds },
    { version: 8, projectIds },
  ]);
});

it("is told what somebody else was faster to change before another role is given", async () => {
  const { bodies, changeMeanwhile } = await open({});
  fireEvent.click(await screen.findByRole("combobox", { name: /Role of .*Bob/ }));
  // Another field offers the same.
  const [admin] = await screen.findAllByRole("option", { name: "Admin", hidden: true });
  if (admin !== undefined) fireEvent.click(admin);
  const dialog = await screen.findByRole("dialog");
  changeMeanwhile({ projectIds: [PROJECT] });
  expect(await screen.findByRole("button", { name: "Nordlicht", hidden: true })).toBeTruthy();
  fireEvent.click(within(dialog).getByRole("button", { name: "Change the role" }));
  const different = await within(dialog).findByRole("region", { name: "What is different by now" });
  expect(toldIn(different)).toEqual([["Projects", "All \u2192 Nordlicht"]]);
  fireEvent.click(within(dialog).getByRole("button", { name: "Change the role" }));
  await waitFor(() => {
    expect(screen.queryByRole("dialog")).toBeNull();
  });
  expect(bodies).toEqual([
    { version: 7, role: "admin" },
    { version: 8, role: "admin" },
  ]);
});
