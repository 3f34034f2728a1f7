import { cleanup, fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, nothing, one, refused, showOperator, type Answers } from "../../testing/render";

import { AddressPage } from "./AddressPage";
import type { AtAddress, Sum, Uncollected } from "./queries";
import { UncollectedPage } from "./UncollectedPage";

const PATH = "/api/admin/collections/uncollected";
const LIST = `GET ${PATH}`;
const SUMS = `GET ${PATH}/sums`;
const ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7";
const AT = `GET /api/admin/collections/addresses/${ADDRESS}`;
const COLLECT = `POST ${PATH}/unc_1/collect`;
const WITHDRAW = `DELETE ${PATH}/unc_1/collect`;
const WAITS = { code: "cost_unknown", text: "The chain could not say what it would cost." } as const;
const CHAINS = { chains: [{ chain: "polygon", name: "Polygon" }] };
const MOMENT = "2026-01-01T12:00:00.000Z";

const SUM: Sum = {
  chain: "polygon",
  token: "USDT",
  contractAddress: "0xc2",
  reason: "below_minimum",
  text: "It is worth less.",
  amount: "41.5",
  addresses: 1200,
  valueUsd: "41.5",
  unpriced: 0,
  since: MOMENT,
};
const ROW: Uncollected = {
  uncollectedId: "unc_1",
  merchantId: "mer_1",
  merchantName: "Nordlicht",
  chain: "polygon",
  token: "USDT",
  contractAddress: "0xc2",
  amount: "3.5",
  address: ADDRESS,
  purpose: "payment",
  paymentId: "pay_1",
  accountId: null,
  reason: "below_minimum",
  text: "It is worth less.",
  valueUsd: "3.5",
  feeUsd: "0.8422",
  until: null,
  sendingPaused: false,
  judgedAt: MOMENT,
  askedAt: null,
  maxFeeShareBps: null,
  wishWaitsFor: null,
  refusal: null,
  refusedAt: null,
  createdAt: MOMENT,
};
const PART: AtAddress = {
  state: "uncollected",
  merchantId: "mer_1",
  merchantName: "Nordlicht",
  mode: "live",
  chain: "polygon",
  token: "USDT",
  contractAddress: "0xc2",
  amount: "3.5",
  deposits: 2,
  address: ADDRESS,
  purpose: "payment",
  code: "below_minimum",
  text: "It is worth less than the least amount.",
  uncollectedId: "unc_1",
  intentId: null,
  valueUsd: "3.5",
  feeUsd: "0.8422",
  askedAt: null,
  maxFeeShareBps: null,
  wishWaitsFor: null,
  refusal: null,
  refusedAt: null,
};

const answers = (rows: readonly Uncollected[], sums: readonly Sum[]): Answers => ({
  [LIST]: { ...(rows.length === 0 ? nothing : one), uncollected: rows },
  [SUMS]: { sums },
  "GET /api/admin/chains": CHAINS,
});
const page = { path: "uncollected", permissions: ["money.read", "chains.read"] } as const;
const address = { path: "uncollected/$address", at: `uncollected/${ADDRESS}` };

describe("what is not collected", () => {
  it("is told by chain, token and reason, and address by address", async () => {
    const unpriced = {
      ...SUM,
      token: "DAIX",
      contractAddress: "0xd1",
      reason: "price_missing",
      unpriced: 1200,
    } as const;
    const some = { ...SUM, token: "USDC", contractAddress: "0xe3", reason: "refused", unpriced: 3 } as const;
    const asked = { askedAt: MOMENT, wishWaitsFor: { ...WAITS, since: MOMENT } } as const;
    const stuck = { ...ROW, ...asked, sendingPaused: true, refusal: "fee_above_share", feeUsd: null } as const;
    await showOperator(UncollectedPage, { ...page, answers: answers([stuck], [SUM, unpriced, some]) });
    const sums = await screen.findByRole("table", { name: "How much, and why" });
    const usdt = within(sums).getByRole("row", { name: /USDT/ });
    expect(within(usdt).getByText("Worth too little")).toBeTruthy();
    expect(within(usdt).getByText("1,200")).toBeTruthy();
    expect(within(usdt).getByText("$41.50")).toBeTruthy();
    expect(within(within(sums).getByRole("row", { name: /DAIX/ })).queryByText("$41.50")).toBeNull();
    expect(within(sums).getByText("3 without a price")).toBeTruthy();
    const list = await screen.findByRole("table", { name: "Address by address" });
    expect(within(list).getByText("Nordlicht")).toBeTruthy();
    expect(within(list).getByText("Sending paused")).toBeTruthy();
    expect(within(list).getByText("Asked for")).toBeTruthy();
    expect(within(list).getByText("Asked for, and not done: Fee takes too much of it")).toBeTruthy();
    expect(within(list).getByText(WAITS.text)).toBeTruthy();
    expect(within(list).getByText("$3.50")).toBeTruthy();
    const link = within(list).getAllByRole("link")[0];
    expect(link?.getAttribute("href")).toBe(`/uncollected/${ADDRESS}`);
  });

  it("is filtered by what a sum is made of, sorted, and saved with the same filters", async () => {
    const sent = await showOperator(UncollectedPage, { ...page, answers: answers([ROW], [SUM]) });
    fireEvent.click(await screen.findByRole("button", { name: "Show these" }));
    const asked = () => sent.filter(({ url }) => new URL(url).pathname === PATH).map(({ url }) => new URL(url).search);
    await expect
      .poll(() => asked().at(-1), { timeout: 20_000 })
      .toBe("?limit=25&chain=polygon&token=USDT&reason=below_minimum&page=1");
    fireEvent.click(screen.getByRole("button", { name: /Since/ }));
    await expect.poll(() => asked().at(-1)?.includes("sort=createdAt"), { timeout: 20_000 }).toBe(true);
    fireEvent.click(screen.getByRole("button", { name: "Download CSV" }));
    await expect.poll(() => asked().at(-1)?.includes("format=csv"), { timeout: 20_000 }).toBe(true);
    expect(asked().at(-1)).toContain("reason=below_minimum");
  });

  it("says where there is nothing, and where nothing is like that", async () => {
    await showOperator(UncollectedPage, { ...page, answers: answers([], []) });
    await expect.poll(() => screen.queryAllByText("Everything is collected").length, { timeout: 20_000 }).toBe(2);
    cleanup();
    await showOperator(UncollectedPage, { ...page, at: "uncollected?reason=refused", answers: answers([], []) });
    expect(await screen.findByText("None is like that")).toBeTruthy();
  });

  it("goes to any address that is typed", async () => {
    await showOperator(UncollectedPage, { ...page, answers: answers([], []) });
    fireEvent.change(await screen.findByPlaceholderText("Any address"), { target: { value: ` ${ADDRESS} ` } });
    fireEvent.click(screen.getByRole("button", { name: "Look at it" }));
    expect(await screen.findByText("elsewhere")).toBeTruthy();
  });
});

describe("what is at an address", () => {
  it("says where nothing waits", async () => {
    await showOperator(AddressPage, { ...address, answers: { [AT]: { deposits: [] } } });
    expect(await screen.findByText("Nothing waits on this address")).toBeTruthy();
  });

  it("is told part by part, with what is on its way, and offers nothing to whoever may only read", async () => {
    const moving = { ...PART, state: "collecting", uncollectedId: null, intentId: "int_1", token: "USDC" } as const;
    const tried = { ...PART, state: "confirming", uncollectedId: null, mode: "sandbox", token: "DAI" } as const;
    await showOperator(AddressPage, {
      ...address,
      permissions: ["money.read", "outbound.read", "merchants.read"],
      answers: { [AT]: { deposits: [PART, moving, tried] } },
    });
    const part = await screen.findByRole("region", { name: "USDT · polygon" });
    expect(within(part).getByText("It is worth less than the least amount.")).toBeTruthy();
    expect(within(part).getByText("$0.8422")).toBeTruthy();
    expect(within(part).getByRole("link", { name: "Nordlicht" }).getAttribute("href")).toBe("/merchants/mer_1");
    expect(within(part).queryByRole("button", { name: "Collect now" })).toBeNull();
    const onItsWay = screen.getByRole("region", { name: "USDC · polygon" });
    expect(within(onItsWay).getByRole("link", { name: "int_1" }).getAttribute("href")).toBe("/queue/int_1");
    expect(within(screen.getByRole("region", { name: "DAI · polygon" })).getByText("Sandbox")).toBeTruthy();
  });

  it("is collected for a fee that is said before, and what refuses stays in the dialog", async () => {
    const bodies: unknown[] = [];
    await showOperator(AddressPage, {
      ...address,
      permissions: ["money.read", "collections.ask"],
      answers: {
        [AT]: () =>
          json({
            deposits: [
              bodies.length < 2 ? PART : { ...PART, askedAt: MOMENT, refusal: "fee_above_share", refusedAt: MOMENT },
            ],
          }),
        [COLLECT]: async (request) => {
          bodies.push(await request.json());
          return bodies.length === 1 ? refused(404, "UNCOLLECTED_NOT_FOUND") : json({ uncollected: ROW });
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Collect now" }));
    const dialog = await screen.findByRole("dialog", { name: "Collect this now?" });
    expect(within(dialog).getByText(/would have been \$0\.8422 at most/)).toBeTruthy();
    const share = within(dialog).getByLabelText<HTMLInputElement>(/in percent of it/);
    expect(share.value).toBe("31");
    expect(within(dialog).getByText(/It costs \$1\.09 at most/)).toBeTruthy();
    fireEvent.change(share, { target: { value: "50" } });
    expect(within(dialog).getByText(/It costs \$1\.75 at most/)).toBeTruthy();
    const act = within(dialog).getByRole("button", { name: "Collect now" });
    fireEvent.click(act);
    expect(await within(dialog).findByText("UNCOLLECTED_NOT_FOUND")).toBeTruthy();
    fireEvent.click(act);
    await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
    expect(bodies).toEqual(Array(2).fill({ maxFeeShareBps: 5000 }));
    expect(await screen.findByText(/Fee takes too much of it/)).toBeTruthy();
    expect(screen.getAllByText("Asked for").length).toBeGreaterThan(0);
  });

  it("is not asked for with a share that is none, and says where nobody knows its price", async () => {
    const unpriced = { ...PART, valueUsd: null, feeUsd: null };
    const sent = await showOperator(AddressPage, {
      ...address,
      permissions: ["money.read", "collections.ask"],
      answers: { [AT]: { deposits: [unpriced] } },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Collect now" }));
    const dialog = await screen.findByRole("dialog");
    expect(within(dialog).getByText(/Nobody knows its price/)).toBeTruthy();
    const share = within(dialog).getByLabelText<HTMLInputElement>(/in percent of it/);
    fireEvent.change(share, { target: { value: "100" } });
    fireEvent.click(within(dialog).getByRole("button", { name: "Collect now" }));
    expect(share.matches(":invalid")).toBe(true);
    expect(sent.some(({ method }) => method === "POST")).toBe(false);
  });

  it("says why what was asked for has no answer, and takes it back", async () => {
    let isAsked = true;
    const asked = { ...PART, askedAt: MOMENT, wishWaitsFor: { ...WAITS, since: MOMENT } } as const;
    const sent = await showOperator(AddressPage, {
      ...address,
      permissions: ["money.read", "collections.ask"],
      answers: {
        [AT]: () => json({ deposits: [isAsked ? asked : PART] }),
        [WITHDRAW]: () => {
          isAsked = false;
          return json({ uncollected: ROW });
        },
      },
    });
    expect(await screen.findByText(WAITS.text)).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Take the request back" }));
    const dialog = await screen.findByRole("dialog", { name: "Take this request back?" });
    fireEvent.click(within(dialog).getByRole("button", { name: "Take the request back" }));
    await expect.poll(() => screen.queryByText(WAITS.text), { timeout: 20_000 }).toBeNull();
    expect(sent.filter(({ method }) => method === "DELETE")).toHaveLength(1);
    expect(screen.queryByRole("button", { name: "Take the request back" })).toBeNull();
  });
});
