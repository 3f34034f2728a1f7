import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, PROJECT, refused, show } from "../../testing/render";

import { NewPayout } from "./NewPayout";

const WALLET = `/api/dashboard/projects/${PROJECT}/wallet`;
const BALANCE = { chain: "polygon", token: "USDT", decimals: 6, available: "3000", pending: "0", held: "0" };
const GOOD = "0x5555555555555555555555555555555555555555";

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
              : [{ row, toAddress, amount: "1", code: "INVALID_ADDRESS", error: "That is no address." }],
          );
          return json({ success: true, rejected });
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: /CSV/ }));
    fireEvent.click(screen.getByRole("combobox", { name: /Out of/ }));
    fireEvent.click(await screen.findByRole("option", { name: "USDT · polygon", hidden: true }));
    const rows = screen.getByLabelText(/^Rows/);
    const check = () => screen.getByRole<HTMLButtonElement>("button", { name: "Check" });
    fireEvent.change(rows, { target: { value: `${GOOD},2\n0x12,1\n` } });
    fireEvent.click(check());
    expect(await screen.findByText("PAYOUT_DISABLED")).toBeTruthy();
    fireEvent.click(check());
    expect(within(await screen.findByRole("row", { name: /0x12/ })).getByText("That is no address.")).toBeTruthy();
    expect(screen.getByText(/1 has to be mended/)).toBeTruthy();
    expect(check().disabled).toBe(true);
    expect(screen.queryByRole("dialog")).toBeNull();
    fireEvent.change(rows, { target: { value: `${GOOD},2\n${GOOD},1\n` } });
    fireEvent.click(check());
    expect(await screen.findByRole("dialog", { name: "Pay 2 rows out?" })).toBeTruthy();
    expect(checked.map((body) => body.destinations.length)).toEqual([2, 2, 2]);
  });
});
