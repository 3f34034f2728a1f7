import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { DESCRIBED } from "../../testing/described";
import { BOB, ME, MEMBERS } from "../../testing/members";
import { json, PROJECT, refused, show } from "../../testing/render";
import { merchantSession } from "../api";

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

async function open(answers: Readonly<Record<string, object>>): Promise<readonly Request[]> {
  return show(TeamPage, {
    path: "team",
    permissions: ["self", "team.manage", "team.recover"],
    member: { memberId: "mem_1", role: "owner" },
    answers: {
      [`GET ${MEMBERS}`]: { success: true, members: [ME, BOB] },
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
    expect(merchantSession.state).toBe("signed-out");
  });
  expect(posted(sent)).toEqual([`POST ${MEMBERS}/leave`, "POST /api/auth/logout"]);
});

const LINK = "https://x.example/set-password#1";

async function letBackIn(name: string): Promise<HTMLElement> {
  const row = (await screen.findByText(name)).closest("tr");
  if (row === null) throw new Error(`${name} is in no row.`);
  fireEvent.click(within(row).getByRole("button", { name: "Let back in" }));
  const dialog = await screen.findByRole("dialog", { name: new RegExp(`Let .*${name}.* back in`) });
  fireEvent.click(within(dialog).getByRole("button", { name: "Let back in" }));
  return dialog;
}

it("lets another member back in, says whose the link is, and takes it away before the next one's", async () => {
  const sent = await open({
    [`GET ${MEMBERS}`]: { success: true, members: [ME, BOB, { ...BOB, memberId: "mem_3", name: "Cleo" }] },
    [`POST ${MEMBERS}/mem_2/two-factor/reset`]: { success: true, link: LINK, member: BOB },
    [`POST ${MEMBERS}/mem_3/two-factor/reset`]: () => refused(409, "CONFLICT"),
  });
  await letBackIn("Bob");
  expect(await screen.findByText(LINK)).toBeTruthy();
  expect(screen.getByText(/Hand this link over to .*Bob/)).toBeTruthy();
  await waitFor(() => {
    expect(screen.queryByRole("dialog")).toBeNull();
  });
  const dialog = within(await letBackIn("Cleo"));
  expect(await dialog.findByText("CONFLICT")).toBeTruthy();
  expect(screen.queryByText(LINK)).toBeNull();
  expect(posted(sent)).toEqual(["mem_2", "mem_3"].map((id) => `POST ${MEMBERS}/${id}/two-factor/reset`));
});

it("opens chosen projects to a member, by the version that was read", async () => {
  const bodies: unknown[] = [];
  await open({
    [`PATCH ${MEMBERS}/mem_2`]: async (request: Request) => {
      bodies.push(await request.json());
      return json({ success: true, member: BOB });
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "All" }));
  const dialog = within(await screen.findByRole("dialog", { name: /Which projects/ }));
  fireEvent.click(dialog.getByRole("button", { name: "Only these" }));
  fireEvent.click(dialog.getByRole("checkbox", { name: "Nordlicht · Live" }));
  fireEvent.click(dialog.getByRole("button", { name: "Open these" }));
  await waitFor(() => {
    expect(bodies).toEqual([{ version: 7, projectIds: [PROJECT] }]);
  });
});

it("opens all projects to nobody who has the last one unticked, but by that choice", async () => {
  const bodies: unknown[] = [];
  await open({
    [`GET ${MEMBERS}`]: { success: true, members: [ME, { ...BOB, projectIds: [PROJECT] }] },
    [`PATCH ${MEMBERS}/mem_2`]: async (request: Request) => {
      bodies.push(await request.json());
      return json({ success: true, member: BOB });
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Nordlicht" }));
  const dialog = within(await screen.findByRole("dialog", { name: /Which projects/ }));
  fireEvent.click(dialog.getByRole("checkbox", { name: "Nordlicht · Live" }));
  const none = dialog.getByRole<HTMLButtonElement>("button", { name: "Open these" });
  expect(none.disabled).toBe(true);
  fireEvent.click(none);
  fireEvent.click(dialog.getByRole("button", { name: "All projects" }));
  fireEvent.click(dialog.getByRole("button", { name: "Open all" }));
  await waitFor(() => {
    expect(bodies).toEqual([{ version: 7, projectIds: null }]);
  });
});

it("offers no choice of projects for owners and admins, to whom every one is open", async () => {
  await open({ [`GET ${MEMBERS}`]: { success: true, members: [ME, { ...BOB, role: "admin" }] } });
  await screen.findByText("Bob");
  expect(screen.getAllByText("All")).toHaveLength(2);
  expect(screen.queryByRole("button", { name: "All" })).toBeNull();
});

async function chooseRole(name: string): Promise<void> {
  fireEvent.click(screen.getByRole("combobox", { name: "Role" }));
  const last = (await screen.findAllByRole("option", { name, hidden: true })).at(-1);
  if (last === undefined) throw new Error(`${name} is not offered.`);
  fireEvent.click(last);
}

it("invites to chosen projects whom they may be chosen for, and keeps none of it for the next one", async () => {
  const bodies: unknown[] = [];
  await open({
    [`POST ${INVITATIONS}`]: async (request: Request) => {
      bodies.push(await request.json());
      return json({ success: true, link: `https://x.example/join#${bodies.length}` });
    },
  });
  const form = within(await screen.findByRole("region", { name: "Invite somebody" }));
  const make = form.getByRole<HTMLButtonElement>("button", { name: "Make the link" });
  const fill = (name: string) => {
    fireEvent.change(form.getByLabelText(/^Name/), { target: { value: name } });
    fireEvent.change(form.getByLabelText(/^E-mail/), { target: { value: `${name}@shop.example` } });
  };
  fill("Cleo");
  fireEvent.click(form.getByRole("button", { name: "Only these" }));
  expect(make.disabled).toBe(true);
  fireEvent.click(form.getByRole("checkbox", { name: "Nordlicht · Live" }));
  fireEvent.click(make);
  expect(await form.findByText("https://x.example/join#1")).toBeTruthy();
  expect(form.getByText(/Hand this link over to .*Cleo/)).toBeTruthy();
  expect(form.getByRole("button", { name: "All projects" }).getAttribute("aria-pressed")).toBe("true");
  fill("Dora");
  fireEvent.click(form.getByRole("button", { name: "Only these" }));
  await chooseRole("Admin");
  expect(form.queryByRole("button", { name: "Only these" })).toBeNull();
  fireEvent.click(make);
  expect(await form.findByText("https://x.example/join#2")).toBeTruthy();
  expect(bodies).toEqual([
    { name: "Cleo", email: "Cleo@shop.example", role: "viewer", projectIds: [PROJECT] },
    { name: "Dora", email: "Dora@shop.example", role: "admin" },
  ]);
});

it("removes a member by a button that first says what becomes of sessions and keys, and offers none for oneself", async () => {
  const sent = await open({ [`DELETE ${MEMBERS}/mem_2`]: { success: true } });
  const remove = await screen.findAllByRole("button", { name: "Remove" });
  expect(remove).toHaveLength(1);
  for (const one of remove) fireEvent.click(one);
  const dialog = within(await screen.findByRole("dialog", { name: /Remove .*Bob/ }));
  expect(dialog.getByText(/Their sessions end at once/)).toBeTruthy();
  expect(posted(sent)).toEqual([]);
  fireEvent.click(dialog.getByRole("button", { name: "Remove" }));
  await waitFor(() => {
    expect(screen.queryByRole("dialog")).toBeNull();
  });
  expect(posted(sent)).toEqual([`DELETE ${MEMBERS}/mem_2`]);
});

it("tells who has no second factor before somebody is invited in vain, in the sandbox, too", async () => {
  await show(TeamPage, {
    path: "team",
    permissions: ["self", "team.manage"],
    mode: "sandbox",
    member: { memberId: "mem_1", role: "owner", hasTwoFactor: false },
    answers: {
      [`GET ${MEMBERS}`]: { success: true, members: [ME] },
      [`GET ${INVITATIONS}`]: { success: true, invitations: [] },
    },
  });
  expect(await screen.findByRole("note")).toBeTruthy();
});

/** Return what a field offers to be chosen. */
async function offeredBy(choice: HTMLElement): Promise<readonly (string | null)[]> {
  fireEvent.click(choice);
  const list = await waitFor(() => {
    const found = document.getElementById(choice.getAttribute("aria-controls") ?? "");
    if (found === null) throw new Error("it offers nothing");
    return found;
  });
  const options = await within(list).findAllByRole("option", { hidden: true });
  return options.map(({ textContent }) => textContent);
}

it("offers an admin nothing about owners, which the API lets owners alone do", async () => {
  const admin = { ...ME, memberId: "mem_3", name: "Cleo", email: "cleo@shop.example", role: "admin" };
  await show(TeamPage, {
    path: "team",
    permissions: ["self", "team.manage"],
    member: { memberId: "mem_3", role: "admin" },
    answers: {
      [`GET ${MEMBERS}`]: { success: true, members: [ME, BOB, admin] },
      [`GET ${INVITATIONS}`]: { success: true, invitations: [] },
    },
  });
  const owner = within(await screen.findByRole("row", { name: /ada@shop/ }));
  expect(owner.queryByRole("combobox")).toBeNull();
  expect(owner.queryByRole("button")).toBeNull();
  const other = within(screen.getByRole("row", { name: /bob@shop/ }));
  expect(other.getByRole("button", { name: "Remove" })).toBeTruthy();
  const form = within(screen.getByRole("region", { name: "Invite somebody" }));
  for (const choice of [other.getByRole("combobox"), form.getByRole("combobox", { name: "Role" })]) {
    const options = await offeredBy(choice);
    expect(options).toContain("Admin");
    expect(options).not.toContain("Owner");
  }
});

it("offers an owner to make another one, of a member and of whoever is invited", async () => {
  await open({});
  const other = within(await screen.findByRole("row", { name: /bob@shop/ }));
  const form = within(screen.getByRole("region", { name: "Invite somebody" }));
  for (const choice of [other.getByRole("combobox"), form.getByRole("combobox", { name: "Role" })]) {
    expect(await offeredBy(choice)).toContain("Owner");
  }
});
