import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, showOperator } from "../../testing/render";

import { MerchantActs } from "./MerchantActs";
import type { MerchantRow } from "./queries";

const MERCHANT = {
  merchantId: "mrc_1",
  name: "Nordlicht",
  live: false,
  planId: null,
  suspendedAt: null,
} as MerchantRow;

function Page() {
  return (
    <>
      <h1>Nordlicht</h1>
      <MerchantActs merchant={MERCHANT} />
    </>
  );
}

it("a plan that is given has the plans asked for again, which say how many merchants have each", async () => {
  let given: unknown = null;
  const plan = { planId: "pln_1", name: "Growth", archivedAt: null };
  const sent = await showOperator(Page, {
    path: "merchants",
    permissions: ["merchants.plan"],
    answers: {
      "GET /api/admin/plans": { plans: [plan] },
      "PUT /api/admin/merchants/mrc_1/plan": async (request) => {
        given = await request.json();
        return json({ success: true });
      },
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Change the plan" }));
  const dialog = await screen.findByRole("dialog");
  fireEvent.click(within(dialog).getByRole("combobox"));
  fireEvent.click(await screen.findByRole("option", { name: "Growth", hidden: true }));
  fireEvent.click(within(dialog).getByRole("button", { name: "Change the plan" }));
  await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
  expect(given).toEqual({ planId: "pln_1" });
  expect(sent.filter((request) => request.method === "GET" && request.url.includes("/api/admin/plans"))).toHaveLength(
    2,
  );
});
