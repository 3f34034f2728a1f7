import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { chooseIn } from "../../testing/menus";
import { one, showOperator } from "../../testing/render";

import { ResolutionPage } from "./ResolutionPage";
import { ResolutionsPage } from "./ResolutionsPage";

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
  refundableAmount: "2.5",
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
const OF_ACCOUNT = { accountId: "acc_1", paymentId: null, paymentStatus: null, orderId: null };
const HELD = { merchantId: "mrc_7", merchantName: "Nordlicht", projectId: "prj_1", mode: "live", canRelease: true };
const at = { path: "resolutions/$depositId", at: "resolutions/dep_1", permissions: ["resolutions.decide"] as const };

const answered = (deposit: object) => ({
  "GET /api/admin/resolutions/dep_1": { resolution: { ...HELD, deposit: { ...DEPOSIT, ...deposit } } },
});

it("what waits is decided on its own page", async () => {
  await showOperator(ResolutionPage, { ...at, answers: answered({}) });
  for (const text of ["Still to be made", "Too late", "Expired", "A-1001"]) {
    expect(await screen.findByText(text)).toBeTruthy();
  }
  expect(screen.getByRole("link", { name: "pay_1" })).toHaveProperty(
    "href",
    expect.stringMatching(/\/payments\/pay_1$/),
  );
  const [main, other] = ["Count to the order", "Only release it"].map((name) => screen.getByRole("button", { name }));
  expect([main?.dataset.variant, other?.dataset.variant]).toEqual(["filled", "default"]);
});

it("what was decided is told, with when, and is not decided again", async () => {
  const resolvedAt = "2026-02-01T12:00:00.000Z";
  await showOperator(ResolutionPage, {
    ...at,
    answers: answered({ resolution: "released", resolvedAt, heldAmount: "0" }),
  });
  for (const text of ["Released", "Decided at"]) expect(await screen.findByText(text)).toBeTruthy();
  for (const act of ["Count to the order", "Only release it"]) {
    expect(screen.queryByRole("button", { name: act })).toBeNull();
  }
});

it("in the list, what counts has a button, and what only releases is in the menu beside it", async () => {
  const deposit = { ...DEPOSIT, ...OF_ACCOUNT };
  const left = { ...DEPOSIT, depositId: "dep_2", canAccept: false };
  const resolutions = [
    { ...HELD, deposit },
    { ...HELD, deposit: left },
  ];
  await showOperator(ResolutionsPage, {
    path: "resolutions",
    permissions: ["resolutions.decide"],
    answers: { "GET /api/admin/resolutions": { ...one, total: 2, resolutions } },
  });
  const [, first, second] = await screen.findAllByRole("row");
  if (first === undefined || second === undefined) throw new Error("There are no rows.");
  fireEvent.click(within(first).getByRole("button", { name: "Count to the account" }));
  expect((await screen.findByRole("dialog")).textContent).toContain("The end user's account is credited");
  fireEvent.click(screen.getByRole("button", { name: "Cancel" }));
  expect(within(first).queryByRole("button", { name: "Only release it" })).toBeNull();
  await chooseIn(first, "Only release it");
  expect((await screen.findByRole("dialog")).textContent).toContain("The end user's account is not credited");
  // Where nothing can take it, to release it is all there is.
  expect(within(second).getByRole("button", { name: "Release it", hidden: true })).toBeTruthy();
  expect(second.querySelector("[aria-haspopup]")).toBeNull();
});

it.each([
  ["a payment", {}, "Only release it", ["the payment stays as it is"]],
  ["an account", OF_ACCOUNT, "Only release it", ["account is not credited", "no webhook tells of it"]],
  ["nothing", { ...OF_ACCOUNT, accountId: null, canAccept: false }, "Release it", ["in the merchant's balance"]],
])("what is said of releasing what came for %s is true of that", async (_, changed, act, words) => {
  await showOperator(ResolutionPage, { ...at, answers: answered(changed) });
  fireEvent.click(await screen.findByRole("button", { name: act }));
  const told = (await screen.findByRole("dialog")).textContent;
  for (const text of [...words, "This cannot be undone."]) expect(told).toContain(text);
  for (const other of ["payment", "account"].filter((what) => !words.join(" ").includes(what))) {
    expect(told).not.toContain(other);
  }
});
