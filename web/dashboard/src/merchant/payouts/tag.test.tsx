import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, PROJECT, show } from "../../testing/render";

import { NewPayout } from "./NewPayout";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const balance = { token: "XRP", contractAddress: null, decimals: 6, available: "30", pending: "0", held: "0" };

it("asks for a tag where the chain has some, and sends none to another chain", async () => {
  const bodies: { readonly toTag?: string }[] = [];
  await show(NewPayout, {
    path: "payouts/new",
    answers: {
      [`GET ${BASE}/wallet`]: {
        success: true,
        mode: "live",
        balances: ["ripple", "polygon"].map((chain) => ({ ...balance, chain })),
      },
      "GET /api/public/chains": {
        success: true,
        chains: [
          { chain: "polygon", name: "Polygon", hasTags: false },
          { chain: "ripple", name: "Ripple", hasTags: true },
        ],
      },
      [`POST ${BASE}/wallet/payout`]: async (request) => {
        bodies.push((await request.json()) as { readonly toTag?: string });
        return json({ success: false, error: "No.", code: "PAYOUT_DISABLED" }, 403);
      },
    },
  });
  for (const [name, tag] of [
    ["ripple", "4711"],
    ["polygon", undefined],
  ] as const) {
    fireEvent.click(await screen.findByRole("combobox", { name: /Out of/ }));
    fireEvent.click(await screen.findByRole("option", { name: new RegExp(name), hidden: true }));
    if (tag === undefined) expect(screen.queryByLabelText(/^Tag/)).toBeNull();
    else fireEvent.change(await screen.findByLabelText(/^Tag/), { target: { value: tag } });
    fireEvent.change(screen.getByRole("textbox", { name: /^To address/ }), { target: { value: "rSomebody" } });
    fireEvent.change(screen.getByRole("textbox", { name: /^Amount/ }), { target: { value: "1" } });
    fireEvent.click(screen.getByRole("button", { name: "Check" }));
    const dialog = await screen.findByRole("dialog", { name: "Pay this out?" });
    expect(within(dialog).queryByText("4711") !== null).toBe(tag !== undefined);
    fireEvent.click(within(dialog).getByRole("button", { name: "Pay out" }));
    expect(await within(dialog).findByText("PAYOUT_DISABLED")).toBeTruthy();
    fireEvent.click(within(dialog).getByRole("button", { name: "Cancel" }));
    await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
  }
  expect(bodies.map(({ toTag }) => toTag)).toEqual(["4711", undefined]);
});
