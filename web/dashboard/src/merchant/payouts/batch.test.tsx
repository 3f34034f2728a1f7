import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, nothing, PROJECT, refused, show } from "../../testing/render";

import { NewPayout } from "./NewPayout";
import { PayoutList } from "./PayoutList";

const WALLET = `/api/dashboard/projects/${PROJECT}/wallet`;
const BALANCE = { chain: "polygon", token: "USDT", decimals: 6, available: "3000", pending: "0", held: "0" };
const GOOD = "0x5555555555555555555555555555555555555555";
const OTHER = "0x6666666666666666666666666666666666666666";

interface Body {
  readonly destinations: readonly { readonly toAddress: string }[];
}

describe("many payouts", () => {
  it("are judged by the API, row by row, before anybody is asked whether to pay", async () => {
    const checked: Body[] = [];
    await show(NewPayout, {
      path: "payouts/new",
      answers: {
        [`GET ${WALLET}`]: { success: true, mode: "live", balances: [BALANCE] },
        [`POST ${WALLET}/payout/batch/check`]: async (request) => {
          const body = (await request.json()) as Body;
          checked.push(body);
          if (checked.length === 1) return refused(503, "PAYOUT_DISABLED");
          const rejected = body.destinations.flatMap(({ toAddress }, row) =>
            toAddress === GOOD
              ? []
              : [
                  {
                    row,
                    toAddress,
                    amount: "1",
                    code: "INVALID_ADDRESS",
                    error: "That is no address.",
                    field: "toAddress",
                  },
                ],
          );
          return json({ success: true, rejected });
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: /CSV/ }));
    fireEvent.click(screen.getByRole("combobox", { name: /Out of/ }));
    fireEvent.click(await screen.findByRole("option", { name: /^USDT · polygon/, hidden: true }));
    const rows = screen.getByLabelText(/^Rows/);
    const check = () => screen.getByRole<HTMLButtonElement>("button", { name: "Check" });
    fireEvent.change(rows, { target: { value: `${GOOD},2\n0x12,1\n` } });
    expect(screen.getAllByText("Not checked yet")).toHaveLength(2);
    expect(screen.queryByText(/more than is available/)).toBeNull();
    fireEvent.click(check());
    expect(await screen.findByText("PAYOUT_DISABLED")).toBeTruthy();
    fireEvent.click(check());
    const row = await screen.findByRole("row", { name: /0x12/ });
    expect(within(row).getByText("That is no address.")).toBeTruthy();
    expect(row.querySelector("[data-whole]")?.textContent).toBe("0x12");
    expect(screen.getAllByRole("mark").map((one) => one.textContent)).toEqual([expect.stringContaining("0x12")]);
    expect(screen.getByText(/1 has to be mended \(line 2\)/)).toBeTruthy();
    expect(screen.getByText("Good")).toBeTruthy();
    fireEvent.change(rows, { target: { value: "no address at all,1\n" } });
    expect(screen.getByText("no address at all", { selector: "mark bdi" })).toBeTruthy();
    fireEvent.change(rows, { target: { value: `${GOOD},3000.01\n` } });
    expect(screen.getByText(/more than is available/)).toBeTruthy();
    expect(check().disabled).toBe(false);
    expect(screen.queryByRole("dialog")).toBeNull();
    fireEvent.change(rows, { target: { value: `${GOOD},2\n${GOOD},1\n` } });
    fireEvent.click(check());
    expect(await screen.findByRole("dialog", { name: "Pay 2 rows out?" })).toBeTruthy();
    expect(checked.map((body) => body.destinations.length)).toEqual([2, 2, 2]);
  });

  it("leave what was rejected, and keep one key where an answer was lost", async () => {
    const keys: string[] = [];
    await show(NewPayout, {
      path: "payouts/new",
      answers: {
        [`GET ${WALLET}`]: { success: true, mode: "live", balances: [BALANCE] },
        [`POST ${WALLET}/payout/batch/check`]: { success: true, rejected: [] },
        [`POST ${WALLET}/payout/batch`]: async (request) => {
          const { idempotencyKey } = (await request.json()) as { idempotencyKey: string };
          keys.push(idempotencyKey);
          if (keys.length === 1) return refused(503, "CHAIN_UNAVAILABLE");
          const code = "PAYOUT_LIMIT_EXCEEDED";
          const late = { row: 1, toAddress: OTHER, amount: "1.5", code, error: "Too much.", field: "amount" };
          return json({ success: true, batch: { batchId: "bat_1" }, payouts: [], rejected: [late] }, 201);
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: /CSV/ }));
    fireEvent.click(screen.getByRole("combobox", { name: /Out of/ }));
    fireEvent.click(await screen.findByRole("option", { name: /^USDT · polygon/, hidden: true }));
    const rows = screen.getByLabelText<HTMLTextAreaElement>(/^Rows/);
    const pay = async () => {
      fireEvent.click(screen.getByRole("button", { name: "Check" }));
      const dialog = await screen.findByRole("dialog");
      fireEvent.click(within(dialog).getByRole("button", { name: "Pay out" }));
      return dialog;
    };
    fireEvent.change(rows, { target: { value: `${GOOD},2\n\n${OTHER},1.5\n` } });
    expect(await within(await pay()).findByText("CHAIN_UNAVAILABLE")).toBeTruthy();
    fireEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Cancel" }));
    fireEvent.change(rows, { target: { value: `${GOOD},3\n\n${OTHER},1.5\n` } });
    await pay();
    expect((await screen.findByText(/1 row was rejected/)).parentElement?.textContent).toContain("3: ");
    expect(rows.value).toBe(`${OTHER},1.5\n`);
    // What is left is marked where it has to be mended.
    expect(screen.getAllByRole("mark").map((one) => one.textContent)).toEqual([expect.stringContaining("1.5 USDT")]);
    await pay();
    await expect.poll(() => keys.length, { timeout: 20_000 }).toBe(3);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
  });

  /** Choose the balance on the page for many payouts, and return the field of the rows. */
  async function many(answers: Parameters<typeof show>[1]["answers"]): Promise<HTMLTextAreaElement> {
    await show(NewPayout, {
      path: "payouts/new",
      answers: { [`GET ${WALLET}`]: { success: true, mode: "live", balances: [BALANCE] }, ...answers },
    });
    fireEvent.click(await screen.findByRole("button", { name: /CSV/ }));
    fireEvent.click(screen.getByRole("combobox", { name: /Out of/ }));
    fireEvent.click(await screen.findByRole("option", { name: /^USDT · polygon/, hidden: true }));
    return screen.getByLabelText<HTMLTextAreaElement>(/^Rows/);
  }

  it("keep the rows and their key while one looks at the other form, also where an answer was lost", async () => {
    const keys: string[] = [];
    const rows = await many({
      [`POST ${WALLET}/payout/batch/check`]: { success: true, rejected: [] },
      [`POST ${WALLET}/payout/batch`]: async (request) => {
        keys.push(((await request.json()) as { idempotencyKey: string }).idempotencyKey);
        if (keys.length === 1) throw new TypeError("Failed to fetch");
        return json({ success: true, batch: { batchId: "bat_1" }, payouts: [], rejected: [] }, 201);
      },
    });
    const pay = async () => {
      fireEvent.click(screen.getByRole("button", { name: "Check" }));
      const dialog = await screen.findByRole("dialog");
      fireEvent.click(within(dialog).getByRole("button", { name: "Pay out" }));
      return dialog;
    };
    fireEvent.change(rows, { target: { value: `${GOOD},2\n` } });
    const dialog = await pay();
    expect(await within(dialog).findByText("NO_ANSWER_ONCE")).toBeTruthy();
    fireEvent.click(within(dialog).getByRole("button", { name: "Cancel" }));
    fireEvent.click(screen.getByRole("button", { name: "One payout" }));
    expect(screen.queryByRole("textbox", { name: /^Rows/ })).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: /CSV/ }));
    expect(screen.getByRole<HTMLTextAreaElement>("textbox", { name: /^Rows/ }).value).toBe(`${GOOD},2\n`);
    await pay();
    expect(await screen.findByText("elsewhere")).toBeTruthy();
    expect(keys).toHaveLength(2);
    expect(keys[1]).toBe(keys[0]);
  });

  it("with equal rows are paid once it is said that they are meant, which holds for these rows alone", async () => {
    const rows = await many({ [`POST ${WALLET}/payout/batch/check`]: { success: true, rejected: [] } });
    const check = () => screen.getByRole<HTMLButtonElement>("button", { name: "Check" });
    fireEvent.change(rows, { target: { value: `${GOOD},2\n${GOOD},2\n` } });
    expect(screen.getByText("There twice")).toBeTruthy();
    expect(check().disabled).toBe(true);
    fireEvent.click(screen.getByRole("checkbox", { name: /1 row is equal to an earlier one/ }));
    expect(screen.queryByText("There twice")).toBeNull();
    fireEvent.click(check());
    expect(await screen.findByRole("dialog", { name: "Pay 2 rows out?" })).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Cancel" }));
    fireEvent.change(rows, { target: { value: `${GOOD},3\n${GOOD},3\n` } });
    expect(check().disabled).toBe(true);
  });

  it("go to the tag that a row names, also what is left of them once some are paid", async () => {
    const paid: object[] = [];
    const rows = await many({
      "GET /api/public/chains": { success: true, chains: [{ chain: "polygon", name: "polygon", hasTags: true }] },
      [`POST ${WALLET}/payout/batch/check`]: { success: true, rejected: [] },
      [`POST ${WALLET}/payout/batch`]: async (request) => {
        paid.push(...((await request.json()) as Body).destinations);
        const late = { row: 1, toAddress: OTHER, amount: "1", code: "INVALID_TAG", error: "No.", field: "toTag" };
        return json({ success: true, batch: { batchId: "bat_1" }, payouts: [], rejected: [late] }, 201);
      },
    });
    fireEvent.change(rows, { target: { value: `${GOOD},2\n${OTHER}#4711,1\n` } });
    expect(screen.getByText("4711", { selector: "code" })).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Check" }));
    const dialog = await screen.findByRole("dialog");
    fireEvent.click(within(dialog).getByRole("button", { name: "Pay out" }));
    await expect.poll(() => rows.value, { timeout: 20_000 }).toBe(`${OTHER}#4711,1\n`);
    expect(paid).toEqual([
      { toAddress: GOOD, amount: "2" },
      { toAddress: OTHER, toTag: "4711", amount: "1" },
    ]);
    expect(screen.getAllByRole("mark").map((one) => one.textContent)).toEqual([expect.stringContaining("4711")]);
  });

  it("name the first of many lines that have to be mended, and say that there are others", async () => {
    const rows = await many({});
    fireEvent.change(rows, { target: { value: `${GOOD},x\n`.repeat(8) } });
    expect(screen.getByText(/8 have to be mended \(lines 1, 2, 3, 4, 5, 6, 7, 8\)/)).toBeTruthy();
    fireEvent.change(rows, { target: { value: `${GOOD},x\n`.repeat(9) } });
    expect(screen.getByText(/9 have to be mended \(lines 1, 2, 3, 4, 5, 6, 7, 8 and others\)/)).toBeTruthy();
  });

  it("are read anew from a file that was mended and chosen again", async () => {
    const rows = await many({});
    const input = document.querySelector<HTMLInputElement>("input[type=file]");
    if (input === null) throw new Error("No file can be chosen.");
    // As in a browser, where what is chosen stays until it is cleared, and to choose it again tells nothing.
    const cleared: string[] = [];
    Object.defineProperty(input, "value", { configurable: true, set: (value: string) => cleared.push(value) });
    const choose = (text: string) => {
      fireEvent.change(input, { target: { files: [new File([text], "rows.csv")] } });
    };
    choose(`${GOOD},x\n`);
    await expect.poll(() => rows.value, { timeout: 20_000 }).toBe(`${GOOD},x\n`);
    await expect.poll(() => cleared, { timeout: 20_000 }).toEqual([""]);
    choose(`${GOOD},1\n`);
    await expect.poll(() => rows.value, { timeout: 20_000 }).toBe(`${GOOD},1\n`);
  });

  it("are listed by themselves afterwards, under the name of their batch, until all are asked for", async () => {
    await show(PayoutList, {
      path: "payouts",
      at: "payouts?batchId=bat_1",
      answers: { [`GET ${WALLET}/payouts`]: { success: true, payouts: [], ...nothing } },
    });
    expect(screen.getByText("Batch bat_1")).toBeTruthy();
    fireEvent.click(await screen.findByRole("button", { name: "All batches" }));
    await waitFor(() => {
      expect(screen.queryByText("Batch bat_1")).toBeNull();
    });
  });
});
