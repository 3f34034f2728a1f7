import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, nothing, one, showOperator } from "../../testing/render";

import { ReconcilePage } from "./ReconcilePage";
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

const DIFFERENCE = {
  chain: "ethereum",
  height: 7,
  merchantId: "mrc_7",
  merchantName: "Nordlicht",
  group: "deposits",
  token: "USDT",
  contractAddress: "0xdac17f958d2ee523a2206206994597c13d831ec7",
  onChain: "99.75",
  booked: "100",
  inTransit: "0",
  difference: "-0.25",
  addresses: [{ address: "0x52908400098527886E0F7030069857D2E4169EE7", onChain: "0.75", expected: "1" }],
  explanations: ["The token takes a fee of its own.", "Something was sent with another wallet."],
};

it("a difference says what could explain it, at which addresses it is, and leads to where blocks are read again", async () => {
  await showOperator(RunPage, {
    path: "reconcile/$jobId",
    at: "reconcile/job_1",
    permissions: ["reconcile.read", "chains.read"],
    answers: {
      "GET /api/admin/chains": { chains: [{ chain: "ethereum", name: "Ethereum" }] },
      "GET /api/admin/reconcile/job_1": { run: { ...RUN, chains: [] } },
      "GET /api/admin/reconcile/job_1/differences": { ...one, differences: [DIFFERENCE] },
    },
  });
  const row = await screen.findByRole("row", { name: /-0.25|\u22120.25/ });
  expect(
    within(row)
      .getByRole("link", { name: /ethereum/i })
      .getAttribute("href"),
  ).toBe("/chains/ethereum");
  for (const words of DIFFERENCE.explanations) expect(within(row).getByText(words).closest("li")).toBeTruthy();
  const which = within(row).getByText("Which addresses");
  fireEvent.click(which);
  expect(which.closest("details")?.textContent).toContain("On the chain 0.75");
  expect(which.closest("details")?.textContent).toContain("expected 1");
});

it.each([
  ["a chain could not be read", { differences: 0, problem: "The chain could not be asked." }, "Not all was read"],
  ["a chain could not be read and another differs", { differences: 2, problem: "No answer." }, "Differs"],
  ["a chain differs", { differences: 2, problem: null }, "Differs"],
])("of a run is said whether it differs or was not read: %s", async (_, told, found) => {
  const chains = [{ ...CHAIN, problemCode: null, chain: "ethereum", listed: 0, ...told }];
  await showOperator(RunPage, {
    path: "reconcile/$jobId",
    at: "reconcile/job_1",
    answers: {
      "GET /api/admin/reconcile/job_1": { run: { ...RUN, chains } },
      "GET /api/admin/reconcile/job_1/differences": { ...nothing, differences: [] },
    },
  });
  const words = told.problem === null ? "Nothing differs" : "Nothing differs in what was read";
  expect((await screen.findByText(words)).textContent).toBe(words);
  expect(["Differs", "Agrees", "Not all was read"].filter((one) => screen.queryByText(one) !== null)).toEqual([found]);
});

it("whoever has it compared is led to what is found", async () => {
  await showOperator(ReconcilePage, {
    path: "reconcile",
    permissions: ["reconcile.start"],
    answers: {
      "GET /api/admin/reconcile": { ...nothing, runs: [] },
      "POST /api/admin/reconcile": () => json({ success: true, run: RUN }, 201),
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Compare now" }));
  fireEvent.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Compare now" }));
  expect(await screen.findByText("elsewhere")).toBeTruthy();
});
