import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { chooseIn } from "../../testing/menus";
import { json, one, PROJECT, show } from "../../testing/render";

import type { Resolution } from "./queries";
import { ResolutionsPage } from "./ResolutionsPage";

const BASE = `/api/dashboard/projects/${PROJECT}/resolutions`;
const HELD: Resolution = {
  depositId: "dep_1",
  reason: "late",
  resolution: null,
  canAccept: true,
  chain: "polygon",
  token: "USDT",
  contractAddress: null,
  decimals: 6,
  amount: "5",
  heldAmount: "5",
  refundableAmount: "5",
  address: "0x5555555555555555555555555555555555555555",
  fromAddress: "0x6666666666666666666666666666666666666666",
  txHash: "0xaaaa",
  minedAt: "2026-01-01T12:00:00.000Z",
  confirmedAt: null,
  resolvedAt: null,
  paymentId: "pay_1",
  paymentStatus: "expired",
  orderId: "A-1",
  accountId: null,
  externalId: null,
};

describe("the resolutions", () => {
  it("lead to what they belong to, and are asked for as the address says", async () => {
    const sent = await show(ResolutionsPage, {
      path: "resolutions",
      at: "resolutions?reason=late&chain=polygon&from=2026-01-01",
      answers: { [`GET ${BASE}`]: { ...one, resolutions: [HELD] } },
    });
    const table = await screen.findByRole("table", { name: "Resolutions" });
    expect(within(table).getByRole("link", { name: /pay_1/ }).getAttribute("href")).toBe(`/${PROJECT}/payments/pay_1`);
    for (const text of ["Expired", "A-1"]) expect(within(table).getByText(text)).toBeTruthy();
    expect(within(table).getByText("0x6666", { selector: "b" })).toBeTruthy();
    const asked = new URL(sent.find(({ url }) => url.includes("/resolutions?"))?.url ?? "").searchParams;
    const from = new Date(2026, 0, 1).toISOString();
    expect(Object.fromEntries(asked)).toEqual({ limit: "25", page: "1", reason: "late", chain: "polygon", from });
  });

  it("mark the field of which the API says that it is wrong, until something is typed", async () => {
    const details = [{ field: "amount", message: "is more than what is held" }];
    await show(ResolutionsPage, {
      path: "resolutions",
      answers: {
        [`GET ${BASE}`]: { ...one, resolutions: [HELD] },
        [`POST ${BASE}/dep_1/refund`]: () =>
          json({ success: false, error: "The request is not valid.", code: "VALIDATION_ERROR", details }, 400),
      },
    });
    await chooseIn(await screen.findByRole("row", { name: /A-1/ }), "Send back");
    const dialog = within(await screen.findByRole("dialog"));
    fireEvent.change(dialog.getByLabelText(/^To address/), { target: { value: "0x12" } });
    fireEvent.click(dialog.getByRole("button", { name: "Send back" }));
    const amount = dialog.getByLabelText(/^Amount/);
    await waitFor(() => {
      expect(amount.getAttribute("aria-invalid")).toBe("true");
    });
    fireEvent.change(amount, { target: { value: "1" } });
    expect(amount.getAttribute("aria-invalid")).not.toBe("true");
  });

  it("say what cannot be undone, and send back a part with a reason", async () => {
    const bodies: unknown[] = [];
    await show(ResolutionsPage, {
      path: "resolutions",
      answers: {
        [`GET ${BASE}`]: { ...one, resolutions: [HELD] },
        [`POST ${BASE}/dep_1/refund`]: async (request) => {
          bodies.push(await request.json());
          return json({ success: true }, 201);
        },
      },
    });
    await chooseIn(await screen.findByRole("row", { name: /A-1/ }), "Release");
    const release = await screen.findByRole("dialog");
    expect(within(release).getByText("This cannot be undone.")).toBeTruthy();
    fireEvent.click(within(release).getByRole("button", { name: "Cancel" }));
    await chooseIn(screen.getByRole("row", { name: /A-1/ }), "Send back");
    const dialog = await screen.findByRole("dialog", { name: "Send it back?" });
    const type = (name: RegExp, value: string) => {
      fireEvent.change(within(dialog).getByLabelText(name), { target: { value } });
    };
    type(/^To address/, HELD.address);
    type(/^Amount/, "2");
    type(/^Reason/, "Too late");
    fireEvent.click(within(dialog).getByRole("button", { name: "Send back" }));
    await expect.poll(() => bodies.length, { timeout: 20_000 }).toBe(1);
    expect(bodies[0]).toMatchObject({ toAddress: HELD.address, amount: "2", reason: "Too late" });
    // The rest is another act: nothing of the last one is left to be sent with one click.
    await waitFor(() => {
      expect(screen.queryByRole("dialog")).toBeNull();
    });
    await chooseIn(screen.getByRole("row", { name: /A-1/ }), "Send back");
    const next = await screen.findByRole("dialog", { name: "Send it back?" });
    for (const name of [/^To address/, /^Amount/, /^Reason/]) {
      expect(within(next).getByLabelText<HTMLInputElement>(name).value).toBe("");
    }
  });

  it("send back what was not sent before, and offer it for no other", async () => {
    const part = { ...HELD, refundableAmount: "2" };
    const nothing = { ...HELD, depositId: "dep_2", orderId: "B-2", canAccept: false, refundableAmount: "0" };
    await show(ResolutionsPage, {
      path: "resolutions",
      answers: { [`GET ${BASE}`]: { ...one, resolutions: [part, nothing] } },
    });
    await chooseIn(await screen.findByRole("row", { name: /A-1/ }), "Send back");
    const dialog = within(await screen.findByRole("dialog"));
    expect(dialog.getAllByText("2")).toHaveLength(2);
    expect(dialog.queryByText("5")).toBeNull();
    fireEvent.click(dialog.getByRole("button", { name: "Cancel" }));
    const row = within(screen.getByRole("row", { name: /B-2/ }));
    expect(row.getByRole("button", { name: "Release" })).toBeTruthy();
    expect(row.queryByRole("button", { name: /^What can be done/ })).toBeNull();
  });

  it("send back to a tag where the chain has some", async () => {
    const bodies: unknown[] = [];
    await show(ResolutionsPage, {
      path: "resolutions",
      answers: {
        "GET /api/public/chains": { success: true, chains: [{ chain: HELD.chain, name: "Ripple", hasTags: true }] },
        [`GET ${BASE}`]: { ...one, resolutions: [HELD] },
        [`POST ${BASE}/dep_1/refund`]: async (request) => {
          bodies.push(await request.json());
          return json({ success: true }, 201);
        },
      },
    });
    await chooseIn(await screen.findByRole("row", { name: /A-1/ }), "Send back");
    const dialog = within(await screen.findByRole("dialog"));
    fireEvent.change(dialog.getByLabelText(/^To address/), { target: { value: HELD.address } });
    fireEvent.change(dialog.getByLabelText(/^Tag/), { target: { value: "4711" } });
    fireEvent.click(dialog.getByRole("button", { name: "Send back" }));
    await expect.poll(() => bodies.length, { timeout: 20_000 }).toBe(1);
    expect(bodies[0]).toMatchObject({ toAddress: HELD.address, toTag: "4711" });
  });

  it("say to whoever has no second factor that sending back needs one, and keeping it none", async () => {
    const answers = { [`GET ${BASE}`]: { ...one, resolutions: [HELD] } };
    await show(ResolutionsPage, { path: "resolutions", answers, member: { hasTwoFactor: false } });
    await chooseIn(await screen.findByRole("row", { name: /A-1/ }), "Release");
    const release = await screen.findByRole("dialog");
    expect(within(release).queryByRole("note")).toBeNull();
    fireEvent.click(within(release).getByRole("button", { name: "Cancel" }));
    await waitFor(() => {
      expect(screen.queryByRole("dialog")).toBeNull();
    });
    await chooseIn(screen.getByRole("row", { name: /A-1/ }), "Send back");
    const note = within(await screen.findByRole("dialog")).getByRole("note");
    expect(note.textContent).toContain("two-factor authentication");
  });
});
