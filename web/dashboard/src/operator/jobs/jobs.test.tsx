import { fireEvent, screen, within } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { chooseLanguage } from "../../i18n";
import { showOperator } from "../../testing/render";

import { JobPage } from "./JobPage";

const JOB = {
  jobId: "job_1",
  state: "running",
  requestedBy: "opr_1",
  result: null,
  error: "No endpoint of the chain answers: node.example is away",
  errorCode: "CHAIN_UNAVAILABLE",
  attempts: 1,
  worker: "worker-2",
  mode: "live",
  dueAt: "2026-01-01T12:00:00.000Z",
  createdAt: "2026-01-01T12:00:00.000Z",
  startedAt: "2026-01-01T12:00:01.000Z",
  finishedAt: null,
  durationMs: 4200,
};

afterEach(async () => {
  await chooseLanguage("en");
});

async function progressOf(job: object): Promise<HTMLElement> {
  await showOperator(JobPage, {
    path: "jobs/$jobId",
    at: "jobs/job_1",
    answers: { "GET /api/admin/jobs/job_1": { job: { ...JOB, ...job } } },
  });
  return await screen.findByRole("region", { name: "How far it is" });
}

it("a job says how long it takes, where it runs, and what is in its way", async () => {
  await progressOf({ kind: "webhook_redelivery", arguments: {}, progress: { queued: 7, last: 12 } });
  for (const text of ["4.2 seconds", "worker-2"]) expect(screen.getByText(text)).toBeTruthy();
  expect(screen.getByText(JOB.error).lang).toBe("en");
});

it.each([
  ["CHAIN_UNAVAILABLE", "Kein Knoten der Chain antwortet.", true],
  ["WATCH_BEHIND", "Zuerst liest die laufende Beobachtung neue Blöcke.", false],
])("what is in its way is said in the reader's language: %s", async (errorCode, sentence, withOwn) => {
  await chooseLanguage("de");
  await showOperator(JobPage, {
    path: "jobs/$jobId",
    at: "jobs/job_1",
    answers: {
      "GET /api/admin/jobs/job_1": { job: { ...JOB, kind: "rescan", arguments: {}, progress: {}, errorCode } },
    },
  });
  expect((await screen.findByText(sentence, { exact: false })).textContent).toContain(sentence);
  expect(screen.queryByText(JOB.error) !== null).toBe(withOwn);
});

it.each([
  ["en", "UNEXPECTED", "KeyError: 'chain'", "The gateway met an error of its own."],
  ["en", "TIMED_OUT", "TimeoutError: ", "It took too long, and was stopped."],
  ["en", "CHAIN_UNAVAILABLE", "ChainUnavailableError: node.example is away", "node.example is away"],
  ["de", "CHAIN_UNAVAILABLE", "ChainUnavailableError: node.example is away", "Kein Knoten der Chain antwortet."],
  ["de", "UNEXPECTED", "KeyError: 'chain'", "Im Gateway ist ein Fehler aufgetreten."],
] as const)(
  "an exception's own words are told to whoever wants them alone: %s %s",
  async (language, code, raw, words) => {
    await chooseLanguage(language);
    const job = { ...JOB, kind: "rescan", arguments: {}, progress: {}, errorCode: code, error: raw };
    await showOperator(JobPage, {
      path: "jobs/$jobId",
      at: "jobs/job_1",
      answers: { "GET /api/admin/jobs/job_1": { job } },
    });
    const told = await screen.findByText(words, { exact: false, ignore: "details *" });
    expect(told.closest("dd")?.querySelector("details")?.open).toBe(false);
    expect(screen.getByText(raw.trim()).closest("details")).toBeTruthy();
  },
);

it.each([
  ["failed", true],
  ["queued", false],
])(
  "how long a job took, and with which worker, is told of none that waits to be tried again: %s",
  async (state, isTold) => {
    await showOperator(JobPage, {
      path: "jobs/$jobId",
      at: "jobs/job_1",
      answers: { "GET /api/admin/jobs/job_1": { job: { ...JOB, kind: "rescan", state, arguments: {}, progress: {} } } },
    });
    await screen.findByText("Asked by");
    expect([screen.queryByText("Took") !== null, screen.queryByText("Worker") !== null]).toEqual([isTold, isTold]);
  },
);

it.each([
  [{ height: 1_499 }, 500, "500 of 1,000"],
  [{}, 0, "0 of 1,000"],
])("blocks that are read again are a bar of all that are to be read: %j", async (progress, value, words) => {
  const part = await progressOf({
    kind: "rescan",
    arguments: { chain: "ethereum", first: 1_000, last: 1_999 },
    progress,
  });
  const bar = within(part).getByRole<HTMLProgressElement>("progressbar", { name: "Blocks read" });
  expect([bar.value, bar.max]).toEqual([value, 1_000]);
  expect(within(part).getByText(words)).toBeTruthy();
});

it.each([
  ["audit_verification", { seals: 20, entries: 12_345, hash: "ab" }, ["20", "12,345"]],
  ["statement_export", { pieces: 1, entries: 5_000, first: 1, end: 9 }, ["5,000"]],
  ["tracker_history", { height: 24_000_000 }, ["24,000,000"]],
  ["webhook_redelivery", { queued: 7, last: 12 }, ["7"]],
  ["reconcile", { ethereum: {}, tron: {} }, ["ethereum, tron"]],
])("what a job of the kind %s has counted so far is told", async (kind, progress, told) => {
  const part = await progressOf({ kind, arguments: {}, progress });
  expect([...part.querySelectorAll("dd")].map((one) => one.textContent)).toEqual(told);
});

it.each([
  ["reconcile", "succeeded", ["reconcile.read"], ["Reconcile", "/reconcile/job_1"]],
  ["audit_verification", "succeeded", ["audit.read"], ["Audit log", "/audit"]],
  ["reconcile", "failed", ["reconcile.read"], null],
  ["reconcile", "succeeded", ["audit.read"], null],
] as const)("a comparison that has ended leads to what it found: %s %s %j", async (kind, state, may, link) => {
  const job = { ...JOB, kind, state, arguments: {}, progress: {}, error: null, errorCode: null };
  await showOperator(JobPage, {
    path: "jobs/$jobId",
    at: "jobs/job_1",
    answers: { "GET /api/admin/jobs/job_1": { job } },
    permissions: [...may],
  });
  await screen.findByText("worker-2");
  const links = screen.queryAllByRole("link").map((one) => [one.textContent, one.getAttribute("href")]);
  expect(links).toEqual(link === null ? [] : [link]);
});

it.each([
  [0, null],
  [2, "2"],
])("a job that went well at once has no failed attempts: %s", async (attempts, told) => {
  const job = { ...JOB, kind: "rescan", arguments: {}, progress: {}, error: null, errorCode: null, attempts };
  await showOperator(JobPage, {
    path: "jobs/$jobId",
    at: "jobs/job_1",
    answers: { "GET /api/admin/jobs/job_1": { job } },
  });
  const part = await screen.findByRole("region", { name: "Details" });
  expect(within(part).queryByText("Failed attempts")?.nextSibling?.textContent ?? null).toBe(told);
});

it.each([
  ["queued", "CHAIN_UNAVAILABLE", true],
  ["queued", null, false],
  ["failed", "CHAIN_UNAVAILABLE", false],
] as const)("one that could not go on says when it is tried again: %s %s", async (state, errorCode, isTold) => {
  const error = errorCode === null ? null : JOB.error;
  const job = { ...JOB, kind: "rescan", arguments: {}, progress: {}, state, error, errorCode };
  await showOperator(JobPage, {
    path: "jobs/$jobId",
    at: "jobs/job_1",
    answers: { "GET /api/admin/jobs/job_1": { job } },
  });
  const part = await screen.findByRole("region", { name: "Details" });
  expect(within(part).queryByText("Looked at next") !== null).toBe(isTold);
});

it("a dialog about cancelling has one button alone that says so", async () => {
  const job = { ...JOB, kind: "rescan", arguments: {}, progress: {} };
  await showOperator(JobPage, {
    path: "jobs/$jobId",
    at: "jobs/job_1",
    answers: { "GET /api/admin/jobs/job_1": { job } },
    permissions: ["jobs.change"],
  });
  fireEvent.click(await screen.findByRole("button", { name: "Cancel the job" }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).queryAllByRole("button", { name: /Cancel/ })).toHaveLength(1);
  fireEvent.click(within(dialog).getByRole("button", { name: "Leave it as it is" }));
  expect(screen.queryByRole("dialog")).toBeNull();
});
