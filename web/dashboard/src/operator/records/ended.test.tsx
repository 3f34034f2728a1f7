import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { DESCRIBED } from "../../testing/described";
import { showOperator } from "../../testing/render";
import type { Schemas } from "../api";

import { Payout } from "./pages";

it.each([
  ["done", false, "Nothing has been signed yet"],
  ["failed", false, "Nothing was signed"],
  ["waiting", true, "Nothing has been signed yet"],
])("nobody looks again at what has ended: %s", async (state, isLookedAt, none) => {
  const { payout } = DESCRIBED.operator.example("/api/admin/payouts/{payoutId}") as {
    readonly payout: Schemas["SentRow"];
  };
  const story = { state, reason: null, dueAt: "2026-01-01T12:00:00.000Z", transactions: [], events: [] };
  await showOperator(Payout, {
    path: "payouts/$id",
    at: "payouts/po_1",
    answers: { "GET /api/admin/payouts/po_1": { success: true, payout, story } },
  });
  const part = await screen.findByRole("region", { name: "Transactions" });
  expect(within(part).queryByText("Looked at next") !== null).toBe(isLookedAt);
  if (state !== "done") expect(within(part).getByText(none)).toBeTruthy();
});
