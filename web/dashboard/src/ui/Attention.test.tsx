import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { PROJECT, show } from "../testing/render";

import { AttentionView } from "./Attention";

const NAV = [
  {
    items: ["payouts", "refunds", "withdrawals", "wallet"].map((page) => ({ to: `/${PROJECT}/${page}`, label: page })),
  },
];

it("leads to each list of what is counted together, and to the state that it is about", async () => {
  const one = (code: string) => ({ code, message: `About ${code}.`, count: 2, since: null });
  const attention = [one("PAYOUTS_FAILED"), one("RECEIVABLE_OUTSTANDING"), one("PAYOUTS_WAITING")];
  const Shown = () => (
    <>
      <h1>Overview</h1>
      <AttentionView attention={attention} nav={NAV} />
    </>
  );
  await show(Shown, { path: "overview", answers: {} });
  const list = await screen.findByRole("list", { name: "What needs attention" });
  const places = within(list)
    .getAllByRole("listitem")
    .map((item) => within(item).getAllByRole("link"))
    .map((links) => links.map((link) => link.getAttribute("href")));
  const SENT = ["payouts", "refunds", "withdrawals"];
  expect(places).toEqual([
    SENT.map((page) => `/${PROJECT}/${page}?status=failed`),
    [`/${PROJECT}/wallet`],
    SENT.flatMap((page) => ["processing", "requested"].map((status) => `/${PROJECT}/${page}?status=${status}`)),
  ]);
});
