import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { showOperator } from "../../testing/render";

import { JobPage } from "./JobPage";

const AT = "2026-01-01T12:00:00.000Z";
const JOB = {
  jobId: "job_1",
  state: "succeeded",
  requestedBy: "gateway",
  arguments: {},
  progress: {},
  result: null,
  error: null,
  errorCode: null,
  attempts: 0,
  worker: null,
  mode: null,
  dueAt: AT,
  createdAt: AT,
  startedAt: AT,
  finishedAt: AT,
  durationMs: 1,
};
const ASKED = "What was asked";
const BECAME = "What came of it";

async function partOf(job: object, name: string): Promise<HTMLElement> {
  await showOperator(JobPage, {
    path: "jobs/$jobId",
    at: "jobs/job_1",
    permissions: ["merchants.read", "records.read"],
    answers: {
      "GET /api/admin/jobs/job_1": { job: { ...JOB, ...job } },
      "GET /api/admin/merchants/mer_1": { merchant: { merchantId: "mer_1", name: "Nordlicht" } },
    },
  });
  return await screen.findByRole("region", { name });
}

/** Return what is said, name by name. */
function factsOf(part: HTMLElement): readonly string[] {
  return [...part.querySelectorAll("dt")].map((one) => {
    const value = one.nextElementSibling?.cloneNode(true) as Element;
    for (const unseen of value.querySelectorAll(".unseen")) unseen.remove();
    return `${one.textContent}: ${value.textContent}`;
  });
}

it.each([
  ["reconcile", { chains: ["ethereum", "tron"] }, null, ["Chains: ethereum, tron"]],
  [
    "rescan",
    { last: 1_999, chain: "ethereum", first: 1_000, open_end: true },
    null,
    ["Chain: ethereum", "From block: 1,000", "To block: 1,999 · the last that was read then"],
  ],
  ["tracker_history", { chain: "tron", scope: 7 }, null, ["Chain: tron", "Mode: Sandbox"]],
  ["statement_export", { merchant_id: "mer_1" }, "live", ["Mode: Live", "Merchant: Nordlicht"]],
  [
    "webhook_redelivery",
    { project_id: "prj_1", endpoint_id: null, events: ["payment.paid", "payment.late"], most: 1_000 },
    null,
    ["Project: prj_1", "Events: payment.paid, payment.late", "At most: 1,000"],
  ],
])("what a job of the kind %s was asked for is said by name", async (kind, args, mode, facts) => {
  const part = await partOf({ kind, arguments: args, mode }, ASKED);
  if (kind === "statement_export") await within(part).findByText("Nordlicht");
  expect(factsOf(part)).toEqual(facts);
  expect(part.querySelector("pre")).toBeNull();
});

it.each([
  [
    "audit_verification",
    { agrees: false, seals: 20, entries: 12_345, waiting: 3, problems: ["Entry 7 is gone."], compared_with_file: true },
    [
      "Result: Differs",
      "Seals: 20",
      "Entries compared: 12,345",
      "Not sealed yet: 3",
      "What is wrong: Entry 7 is gone.",
      "Copy of the seals outside the database: Compared with it",
    ],
  ],
  [
    "reconcile",
    {
      agrees: false,
      chains: {
        ethereum: { height: 24_000_000, differing: 2, differences: [] },
        tron: { problem: "No endpoint of the chain answers.", problemCode: "CHAIN_UNAVAILABLE" },
      },
    },
    ["Result: Differs", "ethereum: Differences: 2 · Block 24,000,000", "tron: No endpoint of the chain answers."],
  ],
  [
    "rescan",
    { fromHeight: 1, toHeight: 9, blocks: 9, deposits: 1, depositIds: ["dep_1"] },
    ["From block: 1", "To block: 9", "Blocks read: 9", "Deposits found: 1", "Deposits: dep_1"],
  ],
  [
    "statement_export",
    { entries: 200_000, complete: false, mediaType: "text/csv", encoding: "gzip" },
    [
      "Lines written: 200,000",
      "State: The file is full: it ends before the last movement.",
      "File type: text/csv",
      "Packed with: gzip",
    ],
  ],
  ["tracker_history", { readBlock: 24_000_000 }, ["Read up to: 24,000,000"]],
  ["webhook_redelivery", { queued: 7, more: false }, ["Deliveries started: 7"]],
])("what came of a job of the kind %s is said by name", async (kind, result, facts) => {
  const part = await partOf({ kind, result }, BECAME);
  expect(factsOf(part)).toEqual(facts);
  expect(part.querySelector("pre")).toBeNull();
});

it("what is not known, or is not what was expected, is shown as the API writes it, and all of it can be copied", async () => {
  const result = { readBlock: 7, skipped: { blocks: [1] } };
  const part = await partOf({ kind: "tracker_history", arguments: { chain: 7, scope: 0 }, result }, BECAME);
  expect(factsOf(part)).toEqual(["Read up to: 7"]);
  expect(JSON.parse(part.querySelector("pre")?.textContent ?? "")).toEqual({ skipped: { blocks: [1] } });
  expect(within(part).getByRole("button", { name: `Copy it: ${BECAME}` })).toBeTruthy();
  const asked = screen.getByRole("region", { name: ASKED });
  expect(factsOf(asked)).toEqual(["Mode: Live"]);
  expect(JSON.parse(asked.querySelector("pre")?.textContent ?? "")).toEqual({ chain: 7 });
});

it("what nothing was said of has no part of the page", async () => {
  await partOf({ kind: "audit_verification", result: { agrees: true } }, BECAME);
  expect(screen.queryByRole("region", { name: ASKED })).toBeNull();
});

it("shows what was asked of a kind that only a later gateway knows", async () => {
  const part = await partOf({ kind: "later", arguments: { chain: "tron" } }, ASKED);
  expect(part.textContent).toContain('"chain": "tron"');
});
