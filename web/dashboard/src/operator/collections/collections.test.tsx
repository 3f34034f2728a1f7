import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { one, showOperator } from "../../testing/render";

import { CollectionsPage } from "./CollectionsPage";

const COLLECTION = {
  collectionId: "col_1",
  merchantId: "mrc_7",
  merchantName: "Nordlicht",
  status: "done",
  chain: "ethereum",
  token: "USDT",
  amount: "12.5",
  fromAddress: "0x52908400098527886E0F7030069857D2E4169EE7",
  deposits: 1_250,
  txHash: null,
  fee: { amount: "0.0021", token: "ETH" },
  createdAt: "2026-01-31T12:00:00.000Z",
  completedAt: null,
};

it("tells what each collection cost, whose it is, and is asked for by mode, chain and days", async () => {
  const [sent] = await showOperator(CollectionsPage, {
    path: "collections",
    at: "collections?mode=sandbox&chain=ethereum&from=2026-01-01&until=2026-01-31&sort=createdAt",
    permissions: ["merchants.read"],
    answers: { "GET /api/admin/collections": { ...one, collections: [COLLECTION] } },
  });
  const row = await screen.findByRole("row", { name: /12\.5/ });
  for (const text of ["Done", "1,250"]) expect(within(row).getByText(text)).toBeTruthy();
  expect(row.textContent).toContain("0.0021 ETH");
  expect(within(row).getByRole("link", { name: "Nordlicht" })).toHaveProperty(
    "href",
    expect.stringMatching(/\/merchants\/mrc_7$/),
  );
  expect(Object.fromEntries(new URL(sent?.url ?? "").searchParams)).toEqual({
    limit: "25",
    page: "1",
    mode: "sandbox",
    chain: "ethereum",
    sort: "createdAt",
    from: new Date(2026, 0, 1).toISOString(),
    to: new Date(2026, 1, 1).toISOString(),
  });
});
