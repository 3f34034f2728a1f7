import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, nothing, showOperator } from "../../testing/render";

import { AuditPage } from "./AuditPage";

const LIST = "GET /api/admin/audit";
const DIFFERS = {
  jobId: "job_1",
  finishedAt: "2026-01-31T12:00:00.000Z",
  requestedBy: "opr_1",
  agrees: false,
  entries: 12345,
  seals: 20,
  waiting: 3,
  problems: ["entry 17 was changed"],
  comparedWithFile: false,
};

it("what came of the last comparison is told, and what is wrong", async () => {
  await showOperator(AuditPage, {
    path: "audit",
    answers: { [LIST]: { ...nothing, entries: [], verification: DIFFERS } },
  });
  const part = await screen.findByRole("region", { name: "Comparison with the seals" });
  expect(within(part).getByText("Differs")).toBeTruthy();
  expect(within(part).getByText("12,345")).toBeTruthy();
  expect(
    within(within(part).getByRole("list", { name: "What is wrong" })).getByText("entry 17 was changed"),
  ).toBeTruthy();
  expect(within(part).getByText(/nobody would notice/)).toBeTruthy();
  expect(within(part).queryByRole("button")).toBeNull();
});

it("it is compared again by whoever may, and leads to the job", async () => {
  let asked = 0;
  await showOperator(AuditPage, {
    path: "audit",
    permissions: ["audit.verify"],
    answers: {
      [LIST]: { ...nothing, entries: [], verification: null },
      "POST /api/admin/audit/verify": () => {
        asked += 1;
        return json({ success: true, job: { jobId: "job_1" } }, 201);
      },
    },
  });
  const part = await screen.findByRole("region", { name: "Comparison with the seals" });
  expect(within(part).getByText(/has not been compared/)).toBeTruthy();
  fireEvent.click(within(part).getByRole("button", { name: "Compare now" }));
  const dialog = await screen.findByRole("dialog");
  expect(asked).toBe(0);
  fireEvent.click(within(dialog).getByRole("button", { name: "Compare now" }));
  await screen.findByText("elsewhere");
  expect(asked).toBe(1);
});
