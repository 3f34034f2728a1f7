import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, nothing, one, PROJECT, show } from "../../testing/render";

import { NewWithdrawal } from "./NewWithdrawal";
import type { Withdrawal } from "./queries";
import { WithdrawalList } from "./WithdrawalList";
import { WithdrawalPage } from "./WithdrawalPage";

const LIST = "GET /api/dashboard/withdrawals";
const WITHDRAWAL: Withdrawal = {
  withdrawalId: "wdr_1",
  projectId: PROJECT,
  status: "processing",
  mode: "live",
  chain: "polygon",
  token: "USDT",
  contractAddress: null,
  decimals: 6,
  amount: "2500",
  toAddress: "0x5555555555555555555555555555555555555555",
  txHash: null,
  fee: null,
  error: null,
  errorCode: null,
  waitsFor: "signer: TARGET_TOO_FRESH",
  waitsForText: "The address is new: signed after 24 hours.",
  createdAt: "2026-01-01T12:00:00.000Z",
  updatedAt: "2026-01-01T12:00:00.000Z",
  completedAt: null,
};

describe("the list of withdrawals", () => {
  it("is the project's, and leads to each of them", async () => {
    const answers = { [LIST]: { ...one, withdrawals: [WITHDRAWAL] } };
    const [sent] = await show(WithdrawalList, { path: "withdrawals", answers });
    expect(new URL(sent?.url ?? "").searchParams.get("projectId")).toBe(PROJECT);
    const link = within(await screen.findByRole("row", { name: /Processing/ })).getByRole("link");
    expect(link.getAttribute("href")).toBe(`/${PROJECT}/withdrawals/wdr_1`);
  });

  it("offers no new one to whoever may only read", async () => {
    const answers = { [LIST]: { ...nothing, withdrawals: [] } };
    await show(WithdrawalList, { path: "withdrawals", answers, permissions: ["read", "withdrawals.read"] });
    expect(await screen.findByText("No withdrawals yet")).toBeTruthy();
    expect(screen.queryByRole("link", { name: "New withdrawal" })).toBeNull();
  });
});

describe("the page of one withdrawal", () => {
  const at = { path: "withdrawals/$withdrawalId", at: "withdrawals/wdr_1" };

  it("shows none of another project, which may be of the other mode", async () => {
    const answers = { [`${LIST}/wdr_1`]: { withdrawal: { ...WITHDRAWAL, projectId: "prj_2" } } };
    await show(WithdrawalPage, { ...at, answers });
    expect(await screen.findByText("There is no such page")).toBeTruthy();
    expect(screen.queryByText(/2,500|2500/)).toBeNull();
    expect(screen.queryByRole("button", { name: "Cancel" })).toBeNull();
  });

  it("says what it waits for, and is cancelled where that is still possible", async () => {
    const cancelled: Request[] = [];
    await show(WithdrawalPage, {
      ...at,
      answers: {
        [`${LIST}/wdr_1`]: { withdrawal: WITHDRAWAL },
        [`GET /api/dashboard/projects/${PROJECT}/events`]: { ...nothing, events: [] },
        "POST /api/dashboard/withdrawals/wdr_1/cancel": (request) => {
          cancelled.push(request);
          return json({ withdrawal: { ...WITHDRAWAL, status: "cancelling" } });
        },
      },
    });
    expect(await screen.findByText(/signed after 24 hours/)).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Cancel" }));
    const dialog = await screen.findByRole("dialog", { name: "Cancel this withdrawal?" });
    fireEvent.click(within(dialog).getByRole("button", { name: "Cancel it" }));
    await expect.poll(() => cancelled.length, { timeout: 20_000 }).toBe(1);
  });
});

it.each([
  ["cancelled", true],
  ["broadcast", false],
] as const)("a withdrawal's money is said to be back only where it is: %s", async (status, isBack) => {
  await show(WithdrawalPage, {
    path: "withdrawals/$withdrawalId",
    at: "withdrawals/wdr_1",
    answers: {
      [`${LIST}/wdr_1`]: { withdrawal: { ...WITHDRAWAL, status, waitsFor: null, txHash: "0xaa" } },
      [`GET /api/dashboard/projects/${PROJECT}/events`]: { ...nothing, events: [] },
    },
  });
  await screen.findByText("Transaction", { selector: "dt" });
  expect(screen.queryByText("Back in your balance") !== null).toBe(isBack);
});

describe("a new withdrawal", () => {
  const wallet = `GET /api/dashboard/projects/${PROJECT}/wallet`;

  const balance = { chain: "polygon", token: "USDT", decimals: 6, available: "3000", pending: "0", held: "0" };

  it("asks for a tag where the chain has some, and sends none to another chain", async () => {
    const bodies: Record<string, unknown>[] = [];
    await show(NewWithdrawal, {
      path: "withdrawals/new",
      answers: {
        [wallet]: { success: true, mode: "live", balances: [balance, { ...balance, chain: "ripple", token: "XRP" }] },
        "GET /api/public/chains": {
          success: true,
          chains: [
            { chain: "polygon", name: "Polygon", hasTags: false },
            { chain: "ripple", name: "Ripple", hasTags: true },
          ],
        },
        "POST /api/dashboard/withdrawals": async (request) => {
          bodies.push((await request.json()) as Record<string, unknown>);
          return json({ success: false, error: "no", code: "UNAVAILABLE" }, 503);
        },
      },
    });
    const source = await screen.findByRole("combobox", { name: /Out of/ });
    for (const [name, tag] of [
      [/^XRP/, "4711"],
      [/^USDT/, undefined],
    ] as const) {
      fireEvent.click(source);
      fireEvent.click(await screen.findByRole("option", { name, hidden: true }));
      if (tag === undefined) expect(screen.queryByLabelText(/^Tag/)).toBeNull();
      else fireEvent.change(await screen.findByLabelText(/^Tag/), { target: { value: tag } });
      fireEvent.change(screen.getByLabelText(/^To address/), { target: { value: "0x55" } });
      fireEvent.change(screen.getByLabelText(/^Amount/), { target: { value: "1" } });
      fireEvent.click(screen.getByRole("button", { name: "Check" }));
      const dialog = await screen.findByRole("dialog", { name: "Withdraw this?" });
      expect(within(dialog).queryByText("4711") !== null).toBe(tag !== undefined);
      fireEvent.change(within(dialog).getByLabelText(/^Code/), { target: { value: "123456" } });
      fireEvent.click(within(dialog).getByRole("button", { name: "Withdraw" }));
      await within(dialog).findByText("UNAVAILABLE");
      fireEvent.click(within(dialog).getByRole("button", { name: "Cancel" }));
      await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
    }
    expect(bodies.map(({ toTag }) => toTag)).toEqual(["4711", undefined]);
  });

  it("asks for a tag while nobody knows whether the chain has some", async () => {
    await show(NewWithdrawal, {
      path: "withdrawals/new",
      answers: {
        [wallet]: { success: true, mode: "live", balances: [{ ...balance, chain: "ripple", token: "XRP" }] },
        "GET /api/public/chains": json({ success: false, error: "no", code: "UNAVAILABLE" }, 503),
      },
    });
    fireEvent.click(await screen.findByRole("combobox", { name: /Out of/ }));
    fireEvent.click(await screen.findByRole("option", { name: /^XRP/, hidden: true }));
    expect(await screen.findByLabelText(/^Tag/)).toBeTruthy();
  });

  it("is sent with a code of its own, under one key however often it is tried", async () => {
    const bodies: Record<string, unknown>[] = [];
    await show(NewWithdrawal, {
      path: "withdrawals/new",
      answers: {
        [wallet]: { success: true, mode: "live", balances: [balance] },
        "POST /api/dashboard/withdrawals": async (request) => {
          bodies.push((await request.json()) as Record<string, unknown>);
          const details = [{ field: "toAddress", message: "is too new" }];
          return bodies.length === 1
            ? json({ success: false, error: "no", code: "TWO_FACTOR_INVALID", details }, 401)
            : json({ withdrawal: WITHDRAWAL }, 201);
        },
      },
    });
    const source = await screen.findByRole("combobox", { name: /Out of/ });
    fireEvent.click(source);
    fireEvent.click(await screen.findByRole("option", { name: /^USDT · polygon/, hidden: true }));
    fireEvent.change(screen.getByLabelText(/^To address/), { target: { value: ` ${WITHDRAWAL.toAddress} ` } });
    fireEvent.change(screen.getByLabelText(/^Amount/), { target: { value: "2500" } });
    fireEvent.click(screen.getByRole("button", { name: "Check" }));
    const dialog = await screen.findByRole("dialog", { name: "Withdraw this?" });
    const act = within(dialog).getByRole<HTMLButtonElement>("button", { name: "Withdraw" });
    expect(act.disabled).toBe(true);
    const code = within(dialog).getByLabelText(/^Code/);
    // A recovery code has letters, which a keyboard of digits has not.
    expect(code.getAttribute("inputmode")).not.toBe("numeric");
    fireEvent.change(code, { target: { value: "000000" } });
    fireEvent.click(act);
    expect(await within(dialog).findByText("TWO_FACTOR_INVALID")).toBeTruthy();
    expect(screen.getByLabelText(/^To address/).getAttribute("aria-invalid")).toBe("true");
    fireEvent.change(code, { target: { value: "123456" } });
    fireEvent.click(act);
    expect(await screen.findByText("elsewhere")).toBeTruthy();
    expect(bodies.map((body) => body.totpCode)).toEqual(["000000", "123456"]);
    expect(bodies[1]).toMatchObject({ projectId: PROJECT, amount: "2500", toAddress: WITHDRAWAL.toAddress });
    expect(bodies[1]?.idempotencyKey).toBe(bodies[0]?.idempotencyKey);
  });
});
