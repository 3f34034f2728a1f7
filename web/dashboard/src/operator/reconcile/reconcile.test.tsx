import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { showOperator } from "../../testing/render";

import { RunPage } from "./RunPage";

const CHAIN = {
  height: 7,
  blockHash: "0x1",
  addressesAsked: 3,
  balances: 2_000,
  problem: null,
  problemCode: null,
};
const RUN = {
  jobId: "job_1",
  state: "succeeded",
  agrees: false,
  waiting: [],
  requestedBy: "opr_1",
  error: null,
  errorCode: null,
  createdAt: "2026-01-01T12:00:00.000Z",
  finishedAt: "2026-01-01T12:01:00.000Z",
};

it.each([
  [1_234, "More differs than is listed here, on ethereum."],
  [100, null],
])("a run says on which chains more differs than it keeps: %s", async (differences, words) => {
  const chains = [
    { ...CHAIN, chain: "ethereum", differences, listed: 100 },
    { ...CHAIN, chain: "polygon", differences: 2, listed: 2 },
  ];
  await showOperator(RunPage, {
    path: "reconcile/$jobId",
    at: "reconcile/job_1",
    answers: {
      "GET /api/admin/reconcile/job_1": { run: { ...RUN, chains } },
      "GET /api/admin/reconcile/job_1/differences": { differences: [], total: 0, next: null, previous: null },
    },
  });
  await screen.findByText(differences.toLocaleString("en"));
  const said = screen.queryByText("More differs than is listed here", { exact: false });
  if (words === null) expect(said).toBeNull();
  else expect(said?.textContent).toContain(words);
});
