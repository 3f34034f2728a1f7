import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { showOperator, toldIn } from "../../testing/render";
import type { Schemas } from "../api";

import { SignerPage } from "./SignerPage";

const MOMENT = "2026-01-31T12:00:00.000Z";
const REFUSAL: Schemas["RefusalView"] = {
  refusedAt: MOMENT,
  firstRefusedAt: "2026-01-31T11:43:00.000Z",
  times: 1_017,
  refusal: "APPROVAL_NEEDED",
  reason: "25000 USDT waits for a person.",
  chain: "ethereum",
  reference: "payout:po_1",
  purpose: "payout",
};
const SIGNER: Schemas["SignerView"] = {
  success: true,
  reportedAt: MOMENT,
  isStale: false,
  approvalsByApi: true,
  lockedUntil: null,
  freshAddressDelaySeconds: 0,
  rules: [],
  addresses: {},
  approvals: [],
  answers: [],
  voided: [],
  refused: [],
};
const CHAINS = { chains: [{ chain: "ethereum", name: "Ethereum", gasStation: { symbol: "ETH" } }] };

async function show(changed: Partial<Schemas["SignerView"]>, more: readonly "signer.answer"[] = []): Promise<void> {
  await showOperator(SignerPage, {
    path: "signer",
    permissions: ["signer.read", "chains.read", ...more],
    answers: { "GET /api/admin/signer": { ...SIGNER, ...changed }, "GET /api/admin/chains": CHAINS },
  });
}

const rule = (setting: string, name: string, limit: string | null, used: string | null = null) => ({
  setting,
  name,
  limit,
  used,
});

it("what is refused again and again stands there once, with how often and since when", async () => {
  const other = { ...REFUSAL, reason: "500 USDT waits for a person.", times: 1, firstRefusedAt: MOMENT };
  await show({ refused: [REFUSAL, other] });
  const table = await screen.findByRole("table", { name: "Refused since the signer was started" });
  const [, often, once] = within(table).getAllByRole("row");
  const textsOf = (row: HTMLElement | undefined) =>
    [...(row?.querySelectorAll("td") ?? [])].map((cell) => cell.textContent);
  const moments = often?.querySelectorAll("time");
  expect([...(moments ?? [])].map((one) => one.dateTime)).toEqual([REFUSAL.refusedAt, REFUSAL.firstRefusedAt]);
  expect(textsOf(often)[2]).toBe("1,017");
  expect(textsOf(once).slice(1, 3)).toEqual(["\u2013", "1"]);
});

it("each rule says in words what it bounds, and how much that is of what", async () => {
  await show({
    rules: [
      rule("approval_limits", "ethereum/USDT", "20000"),
      rule("fee_caps", "ethereum", "0.05"),
      rule("floor_rates", "ethereum/ETH -> ethereum/USDT", "1500"),
      rule("hourly_caps", "ethereum/USDT", null, "1200"),
      rule("key.fresh_payouts_per_hour", "each merchant", "20"),
      rule("session.fresh_address_caps", "ethereum/USDT", "500"),
      rule("to_come", "ethereum/USDT", "5"),
    ],
  });
  const table = await screen.findByRole("table", { name: "Rules" });
  // What a chain takes its fees in is asked for apart.
  await within(table).findByText("ETH");
  const rows = within(table).getAllByRole("row").slice(1);
  const told = rows.map((row) => {
    const cells = [...row.querySelectorAll("td")];
    const shown = cells.slice(1).map((cell) => cell.querySelector("bdi")?.textContent ?? cell.textContent);
    const says = [...(cells[0]?.querySelectorAll("div > div, code") ?? [])].map((one) => one.textContent);
    return [...says, ...shown];
  });
  const key = "Asked for with API keys, for each merchant";
  const session = "Asked for in the dashboard, for each merchant";
  expect(told).toEqual([
    ["From this amount on, a person must agree", "signer.approval_limits", "USDT · ethereum", "20,000 USDT", "\u2013"],
    ["Fee of a transaction, at most", "signer.fee_caps", "ethereum", "0.05 ETH", "\u2013"],
    ["What an exchange brings, at least", "signer.floor_rates", "ETH → USDT · ethereum", "1,500 USDT / ETH", "\u2013"],
    ["Leaves within an hour, at most", "signer.hourly_caps", "USDT · ethereum", "No limit", "1,200 USDT"],
    [
      "Payouts to fresh addresses within an hour without the delay, at most",
      key,
      "signer.key.fresh_payouts_per_hour",
      "Each merchant",
      "20",
      "\u2013",
    ],
    [
      "Goes to fresh addresses within an hour without the delay, at most",
      session,
      "signer.session.fresh_address_caps",
      "USDT · ethereum",
      "500 USDT",
      "\u2013",
    ],
    ["signer.to_come", "USDT · ethereum", "5 USDT", "\u2013"],
  ]);
});

it("coins of which the same is said are one row, with what each has used", async () => {
  await show({
    rules: [
      rule("hourly_caps", "ethereum/USDT", "20000", "1200"),
      rule("hourly_caps", "base/USDT", "20000", "0"),
      rule("hourly_caps", "tron/USDT", "5000", "0"),
      rule("hourly_caps", "base/USDC", "20000", "0"),
      rule("hourly_caps", "ethereum/USDC", "20000", "0"),
      rule("fresh_address_caps", "ethereum/USDT", null, "0"),
      rule("fresh_address_caps", "base/USDC", null, "7.5"),
      rule("fresh_address_caps", "ethereum/USDC", null, "0"),
      rule("session.fresh_address_caps", "ethereum/USDT", "0"),
      rule("session.fresh_address_caps", "base/ETH", "0"),
      rule("floor_rates", "ethereum/ETH -> base/USDC", "1500"),
      rule("floor_rates", "ethereum/ETH -> ethereum/USDC", "1500"),
    ],
  });
  const table = await screen.findByRole("table", { name: "Rules" });
  const told = within(table)
    .getAllByRole("row")
    .slice(1)
    .map((row) => {
      const [says, ...cells] = [...row.querySelectorAll("td > div")];
      // What a button is called by whoever reads aloud is not to be seen.
      for (const unseen of row.querySelectorAll(".unseen")) unseen.remove();
      const lines = (cell: Element) => [...cell.querySelectorAll("div")].map((line) => line.textContent);
      const shown = cells.map((cell) => (lines(cell).length === 0 ? [cell.textContent] : lines(cell)));
      return [says?.querySelector("code")?.textContent.replaceAll("\u200b", ""), ...shown];
    });
  expect(told).toEqual([
    ["signer.floor_rates", ["ETH · ethereum → USDC · base", "ETH → USDC · ethereum"], ["1,500 USDC / ETH"], ["–"]],
    ["signer.fresh_address_caps", ["USDC · base, ethereum", "USDT · ethereum"], ["No limit"], ["7.5 USDC base"]],
    ["signer.hourly_caps", ["USDC · base, ethereum"], ["20,000 USDC"], ["0 USDC"]],
    ["signer.hourly_caps", ["USDT · tron"], ["5,000 USDT"], ["0 USDT"]],
    ["signer.hourly_caps", ["USDT · base, ethereum"], ["20,000 USDT"], ["1,200 USDT ethereum"]],
    ["signer.session.fresh_address_caps", ["ETH · base", "USDT · ethereum"], ["0"], ["–"]],
  ]);
});

it("no delay is said in words, and so is that it is heard of", async () => {
  await show({});
  const facts = toldIn(await screen.findByRole("region", { name: "How it stands" }));
  expect(facts).toContainEqual(["State", "In contact"]);
  expect(facts).toContainEqual([
    "How long an address must be known before much is sent to it",
    "Not at all: there is no delay for new addresses",
  ]);
});

const APPROVAL: Schemas["ApprovalView"] = {
  approvalId: "7",
  question: "#7: 25000 USDT",
  reference: "payout:po_1",
  intentId: "int_1",
  purpose: "payout",
  askedBy: "key",
  chain: "ethereum",
  toChain: "ethereum",
  toAddress: "0x52908400098527886E0F7030069857D2E4169EE7",
  amount: "25000 USDT",
  askedAt: MOMENT,
};

it.each([
  [false, "int_1", "cambist signer approve payout:po_1", ["to its page in the queue", "/queue/int_1"]],
  [false, null, "cambist signer approve payout:po_1", ["Outbound queue", "/queue"]],
  [true, "int_1", null, null],
])("what waits for a person says what to run where no answer is taken here: %s %s", async (...told) => {
  const [approvalsByApi, intentId, command, way] = told;
  await show({ approvals: [{ ...APPROVAL, intentId }], approvalsByApi });
  const part = await screen.findByRole("region", { name: "Waiting for a person" });
  expect(toldIn(part)).toContainEqual(["Amount", "25,000 USDTCopy 25000 USDT"]);
  const commands = [...part.querySelectorAll("p code")].map((one) => one.textContent);
  expect(commands).toEqual(command === null ? [] : [command]);
  const ways = within(part).queryAllByRole("link");
  expect(ways.map((one) => [one.textContent, one.getAttribute("href")])).toEqual(way === null ? [] : [way]);
});

const ANSWER: Schemas["AnswerView"] = {
  answerId: "a_1",
  approvalId: "7",
  question: APPROVAL.question,
  verdict: "approve",
  askedBy: "gateway",
  askedAt: MOMENT,
  outcome: null,
  answeredAt: null,
};

it.each([
  ["code_wrong", "The code was wrong or too old: make a new one"],
  ["a_later_outcome", "a later outcome"],
])("what became of an answer is said in words: %s", async (outcome, words) => {
  await show({ approvals: [APPROVAL], answers: [{ ...ANSWER, outcome, answeredAt: MOMENT }] });
  const part = await screen.findByRole("region", { name: "Waiting for a person" });
  expect(part.textContent).toContain(words);
  expect(part.textContent).not.toContain(outcome);
});

it("what was answered is told once nothing waits for it any more, the latest alone", async () => {
  const many = Array.from({ length: 12 }, (_, at) => ({ ...ANSWER, answerId: `b_${String(at)}`, outcome: "denied" }));
  await show({ answers: [ANSWER, ...many] });
  const table = await screen.findByRole("table", { name: "Latest answers" });
  const [, first, second, ...others] = within(table).getAllByRole("row");
  const textsOf = (row: HTMLElement | undefined) =>
    [...(row?.querySelectorAll("td") ?? [])].slice(1).map((cell) => cell.textContent);
  expect(textsOf(first)).toEqual(["The gateway itself", "Approve", "Not yet taken", APPROVAL.question]);
  expect(textsOf(second)).toEqual(["The gateway itself", "Approve", "Denied", APPROVAL.question]);
  expect(others).toHaveLength(8);
});

it("what waits for a person is not told as refused beside it", async () => {
  const other = { ...REFUSAL, reference: "payout:po_2" };
  await show({ approvals: [APPROVAL], refused: [REFUSAL, { ...REFUSAL, refusal: "VOIDED" }, other] });
  const table = await screen.findByRole("table", { name: "Refused since the signer was started" });
  expect(within(table).getAllByRole("row")).toHaveLength(3);
});

it.each(["Approve", "Deny"])(
  "whoever would %s copies the question, and types the command that makes a code of it",
  async (act) => {
    await show({ approvals: [APPROVAL] }, ["signer.answer"]);
    fireEvent.click(await screen.findByRole("button", { name: act }));
    const dialog = await screen.findByRole("dialog");
    const copied = [...dialog.querySelectorAll("button code")].map((one) => one.textContent);
    const shown = [...dialog.querySelectorAll("p > code")].map((one) => one.textContent);
    expect([copied, shown]).toEqual([[APPROVAL.question], ["cambist signer code ~/answers.secret"]]);
  },
);

it("what is signed for leads to its page, for whoever may read that", async () => {
  await showOperator(SignerPage, {
    path: "signer",
    permissions: ["signer.read", "records.read"],
    answers: {
      "GET /api/admin/signer": { ...SIGNER, approvals: [APPROVAL], refused: [{ ...REFUSAL, refusal: "VOIDED" }] },
    },
  });
  await screen.findByRole("table", { name: "Refused since the signer was started" });
  const links = screen.getAllByRole("link").map((link) => link.getAttribute("href"));
  expect(links).toEqual(["/payouts/po_1", "/payouts/po_1"]);
});
