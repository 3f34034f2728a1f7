import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { showOperator } from "../../testing/render";

import { ResolutionPage } from "./ResolutionPage";

const DEPOSIT = {
  depositId: "dep_1",
  reason: "late",
  resolution: null,
  canAccept: true,
  chain: "ethereum",
  token: "USDT",
  contractAddress: null,
  decimals: 6,
  amount: "2.5",
  heldAmount: "2.5",
  address: "0x52908400098527886E0F7030069857D2E4169EE7",
  fromAddress: null,
  txHash: "0xab",
  minedAt: "2026-01-31T12:00:00.000Z",
  confirmedAt: null,
  resolvedAt: null,
  paymentId: "pay_1",
  paymentStatus: "expired",
  orderId: "A-1001",
  accountId: null,
  externalId: null,
};
const HELD = { merchantId: "mrc_7", merchantName: "Nordlicht", projectId: "prj_1", mode: "live", canRelease: true };
const at = { path: "resolutions/$depositId", at: "resolutions/dep_1", permissions: ["resolutions.decide"] as const };

const answered = (deposit: object) => ({
  "GET /api/admin/resolutions/dep_1": { resolution: { ...HELD, deposit: { ...DEPOSIT, ...deposit } } },
});

it("what waits is decided on its own page", async () => {
  await showOperator(ResolutionPage, { ...at, answers: answered({}) });
  for (const text of ["Nothing yet: it waits", "Too late", "Expired", "A-1001"]) {
    expect(await screen.findByText(text)).toBeTruthy();
  }
  expect(screen.getByRole("link", { name: "pay_1" })).toHaveProperty(
    "href",
    expect.stringMatching(/\/payments\/pay_1$/),
  );
  for (const act of ["Accept", "Release"]) expect(screen.getByRole("button", { name: act })).toBeTruthy();
});

it("what was decided is told, with when, and is not decided again", async () => {
  const resolvedAt = "2026-02-01T12:00:00.000Z";
  await showOperator(ResolutionPage, {
    ...at,
    answers: answered({ resolution: "released", resolvedAt, heldAmount: "0" }),
  });
  for (const text of ["Released", "Decided at"]) expect(await screen.findByText(text)).toBeTruthy();
  for (const act of ["Accept", "Release"]) expect(screen.queryByRole("button", { name: act })).toBeNull();
});
