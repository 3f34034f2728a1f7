import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, showOperator } from "../../testing/render";

import { Members } from "./Members";
import { StatementButton } from "./StatementButton";

const ADA = {
  memberId: "mem_1",
  email: "ada@shop.example",
  name: "Ada",
  role: "owner",
  projectIds: null,
  hasTwoFactor: true,
  version: 1,
  createdAt: "2026-01-31T12:00:00.000Z",
} as const;
const BOB = { ...ADA, memberId: "mem_2", name: "Bob", email: "bob@shop.example", hasTwoFactor: false } as const;

function Page() {
  return (
    <>
      <h1>Nordlicht</h1>
      <Members members={[ADA, BOB]} />
    </>
  );
}

it("a member gets a link for a new password, which is shown once", async () => {
  const bodies: unknown[] = [];
  await showOperator(Page, {
    path: "merchants",
    permissions: ["merchants.recover"],
    answers: {
      "POST /api/admin/password-resets": async (request) => {
        bodies.push(await request.json());
        return json({ success: true, token: "t", link: "https://gateway.example/set-password#t", expiresIn: 900 }, 201);
      },
    },
  });
  const row = await screen.findByRole("row", { name: /bob@/ });
  expect(within(row).queryByRole("button", { name: "Reset second factor" })).toBeNull();
  fireEvent.click(within(row).getByRole("button", { name: "New link" }));
  const asked = await screen.findByRole("dialog", { name: "Let Bob set a new password?" });
  fireEvent.click(within(asked).getByRole("button", { name: "New link" }));
  const shown = await screen.findByRole("dialog", { name: "A link to hand over" });
  expect(within(shown).getByText("https://gateway.example/set-password#t")).toBeTruthy();
  expect(within(shown).getByText("Bob")).toBeTruthy();
  expect(within(shown).getByText("bob@shop.example")).toBeTruthy();
  expect(bodies).toEqual([{ email: "bob@shop.example" }]);
});

it("one member's link is gone once another act begins", async () => {
  await showOperator(Page, {
    path: "merchants",
    permissions: ["merchants.recover"],
    answers: {
      "POST /api/admin/password-resets": {
        success: true,
        token: "t",
        link: "https://gateway.example/set-password#t",
        expiresIn: 900,
      },
    },
  });
  const row = await screen.findByRole("row", { name: /bob@/ });
  fireEvent.click(within(row).getByRole("button", { name: "New link" }));
  fireEvent.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "New link" }));
  expect(await screen.findByText("https://gateway.example/set-password#t")).toBeTruthy();
  // The page lies behind the link, where what is read aloud does not find it.
  const reset = screen.getByRole("button", { name: "Reset second factor", hidden: true });
  fireEvent.click(reset);
  expect(await screen.findByRole("dialog", { name: /Ada/ })).toBeTruthy();
  expect(screen.queryByText("https://gateway.example/set-password#t")).toBeNull();
});

it("a second factor is taken away once the member's address was typed", async () => {
  const bodies: unknown[] = [];
  await showOperator(Page, {
    path: "merchants",
    permissions: ["merchants.recover"],
    answers: {
      "POST /api/admin/merchants/two-factor/reset": async (request) => {
        bodies.push(await request.json());
        return json({ success: true });
      },
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Reset second factor" }));
  const dialog = await screen.findByRole("dialog");
  const act = within(dialog).getByRole<HTMLButtonElement>("button", { name: "Reset second factor" });
  expect(act.disabled).toBe(true);
  fireEvent.change(within(dialog).getByRole("textbox"), { target: { value: ADA.email } });
  fireEvent.click(act);
  await waitFor(() => {
    expect(screen.queryByRole("dialog")).toBeNull();
  });
  expect(bodies).toEqual([{ email: ADA.email }]);
});

it("who may not let anybody back in is offered nothing", async () => {
  await showOperator(Page, { path: "merchants", answers: {} });
  expect(screen.queryByRole("button")).toBeNull();
});

it("a statement is asked for by whole days, and leads to its job", async () => {
  const bodies: unknown[] = [];
  await showOperator(
    () => (
      <>
        <h1>Nordlicht</h1>
        <StatementButton merchantId="mrc_1" mode="live" />
      </>
    ),
    {
      path: "merchants",
      permissions: ["jobs.change"],
      answers: {
        "POST /api/admin/jobs": async (request) => {
          bodies.push(await request.json());
          return json({ success: true, job: { jobId: "job_1" } }, 201);
        },
      },
    },
  );
  fireEvent.click(screen.getByRole("button", { name: "Statement" }));
  const dialog = await screen.findByRole("dialog");
  fireEvent.change(within(dialog).getByLabelText("From"), { target: { value: "2026-01-01" } });
  fireEvent.change(within(dialog).getByLabelText("Until"), { target: { value: "2026-01-31" } });
  fireEvent.click(within(dialog).getByRole("button", { name: "Statement" }));
  await screen.findByText("elsewhere");
  const [since, until] = [new Date(2026, 0, 1).toISOString(), new Date(2026, 1, 1).toISOString()];
  expect(bodies).toEqual([{ kind: "statement_export", merchantId: "mrc_1", mode: "live", since, until }]);
});
