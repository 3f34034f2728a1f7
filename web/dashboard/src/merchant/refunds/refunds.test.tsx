import { cleanup, fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { nothing, one, PROJECT, show } from "../../testing/render";

import { RefundList } from "./RefundList";

const LIST = `GET /api/dashboard/projects/${PROJECT}/payments/refunds/list`;
const REFUND = {
  refundId: "ref_1",
  paymentId: "pay_1",
  status: "completed",
  chain: "polygon",
  token: "USDT",
  amount: "12.5",
  toAddress: "0x5555555555555555555555555555555555555555",
  reason: "The wrong size",
  error: null,
  errorCode: null,
  waitsForText: null,
  txHash: null,
  createdAt: "2026-01-01T12:00:00.000Z",
};

describe("the refunds", () => {
  it("are listed with what came of them, each leading to its payment", async () => {
    await show(RefundList, {
      path: "refunds",
      answers: { [LIST]: { ...one, refunds: [REFUND, { ...REFUND, refundId: "ref_2", paymentId: null }] } },
    });
    const table = await screen.findByRole("table", { name: "Refunds" });
    expect(within(table).getAllByText("The wrong size")).toHaveLength(2);
    expect(within(table).getAllByText("Completed")).toHaveLength(2);
    const links = within(table).getAllByRole("link");
    expect(links.map((link) => link.getAttribute("href"))).toEqual([
      `/${PROJECT}/refunds/ref_1`,
      `/${PROJECT}/payments/pay_1`,
      `/${PROJECT}/refunds/ref_2`,
    ]);
  });

  it("say where there are none, and where none is like that", async () => {
    const answers = { [LIST]: { ...nothing, refunds: [] } };
    await show(RefundList, { path: "refunds", answers });
    expect(await screen.findByText("Nothing was sent back yet")).toBeTruthy();
    cleanup();
    await show(RefundList, { path: "refunds", at: "refunds?status=failed", answers });
    expect(await screen.findByText("No refund is like that")).toBeTruthy();
  });

  it("are filtered, sorted, and saved with the same filters", async () => {
    const sent = await show(RefundList, {
      path: "refunds",
      at: "refunds?status=failed",
      answers: { [LIST]: { ...one, refunds: [{ ...REFUND, status: "failed", error: "It reverts." }] } },
    });
    expect(await screen.findByText("It reverts.")).toBeTruthy();
    const asked = () => new URL(sent.at(-1)?.url ?? "").search;
    expect(asked()).toBe("?limit=25&page=1&status=failed");
    fireEvent.click(screen.getByRole("button", { name: /Created/ }));
    await expect.poll(asked, { timeout: 20_000 }).toBe("?limit=25&page=1&status=failed&sort=createdAt");
    fireEvent.click(screen.getByRole("button", { name: "Download CSV" }));
    await expect.poll(asked, { timeout: 20_000 }).toBe("?format=csv&status=failed&sort=createdAt");
  });
});
