import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, nothing, PROJECT, show } from "../../testing/render";
import type { PaymentDetail, Schemas } from "../queries";

import { PaymentEvents } from "./PaymentEvents";
import { entriesOf, Timeline } from "./Timeline";

const BASE = `/api/dashboard/projects/${PROJECT}/events`;
const at = (minute: string) => `2026-01-01T12:${minute}:00.000Z`;
const EVENT = {
  eventId: "evt_1",
  event: "payment.paid",
  resource: "payment",
  resourceId: "pay_1",
  createdAt: at("20"),
  payload: {},
  deliveries: [
    {
      deliveryId: "dlv_1",
      endpointId: null,
      url: "https://shop.example/hook",
      status: "delivered",
      attempts: 1,
      deliveredAt: at("21"),
      nextAttemptAt: null,
    },
  ],
} as const satisfies Schemas["EventAnswer"];
type Deposit = Schemas["DepositView"];
const DEPOSIT: Deposit = {
  depositId: "dep_1",
  resolution: null,
  txHash: "0xaaaa",
  chain: "polygon",
  token: "USDT",
  amount: "5",
  counted: true,
  status: "confirmed",
  confirmations: 12,
  requiredConfirmations: 12,
  seenAt: at("10"),
  minedAt: at("10"),
  confirmedAt: at("15"),
};
const PAYMENT = {
  paymentId: "pay_1",
  status: "paid",
  createdAt: at("00"),
  updatedAt: at("20"),
  deposits: [DEPOSIT],
  depositsLeftOut: 0,
  orphanedDeposits: [],
  orphanedDepositsLeftOut: 0,
} as unknown as PaymentDetail;

function Shown() {
  return (
    <>
      <h1>One</h1>
      <Timeline projectId={PROJECT} payment={PAYMENT} />
    </>
  );
}

function Others() {
  return (
    <>
      <h1>One</h1>
      <PaymentEvents projectId={PROJECT} paymentId="po_1" version="1" />
    </>
  );
}

describe("the timeline of a payment", () => {
  it("has its deposits, their confirmation and what was told in one order, the newest first", async () => {
    const detected = { ...EVENT, eventId: "evt_0", event: "payment.detected", createdAt: at("11") };
    const answers = { [`GET ${BASE}`]: { ...nothing, total: 2, events: [EVENT, detected] } };
    await show(Shown, { path: "payments/pay_1", answers });
    const section = await screen.findByRole("region", { name: "Timeline" });
    const entries = await within(section).findAllByRole("listitem");
    expect(entries.map((one) => one.querySelector("b")?.textContent)).toEqual([
      "payment.paid",
      "Deposit",
      "payment.detected",
      "Deposit",
      "Created",
    ]);
    expect([entries[1], entries[3]].map((one) => one?.textContent)).toEqual([
      expect.stringContaining("Confirmed"),
      expect.stringContaining("Detected"),
    ]);
    const links = within(section).getAllByRole("link");
    expect(links.map((link) => link.getAttribute("href"))).toEqual([
      `/${PROJECT}/events/evt_1`,
      `/${PROJECT}/webhooks/dlv_1`,
      `/${PROJECT}/events/evt_0`,
      `/${PROJECT}/webhooks/dlv_1`,
    ]);
  });

  it("says of a deposit that it is not part of the order, and tells two of one transaction apart", async () => {
    const twin: Deposit = { ...DEPOSIT, depositId: "dep_2" };
    const seen = { confirmedAt: null, status: "detected" } as const;
    const other: Deposit = { ...twin, ...seen, depositId: "dep_3", token: "USDC", counted: false };
    const payment = { ...PAYMENT, deposits: [DEPOSIT, twin, other] };
    const keys = entriesOf(payment, []).map((one) => one.key);
    expect(new Set(keys).size).toBe(6);
    const Three = () => (
      <>
        <h1>One</h1>
        <Timeline projectId={PROJECT} payment={payment} />
      </>
    );
    await show(Three, { path: "payments/pay_1", answers: { [`GET ${BASE}`]: { ...nothing, events: [] } } });
    const section = await screen.findByRole("region", { name: "Timeline" });
    const entries = await within(section).findAllByRole("listitem");
    const aside = entries.filter((one) => one.textContent.includes("not part of the order"));
    expect(aside.map((one) => one.textContent)).toEqual([expect.stringContaining("USDC")]);
    expect(entries).toHaveLength(6);
  });

  it("has deposits that a reorganization took away, before and after they were confirmed, and says what is left out", async () => {
    const { txHash, chain, token, amount, counted } = DEPOSIT;
    const gone = { txHash, chain, token, amount, counted, seenAt: at("05"), orphanedAt: at("07") };
    const payment: PaymentDetail = {
      ...PAYMENT,
      depositsLeftOut: 2,
      orphanedDeposits: [
        { ...gone, depositId: "dep_2", confirmedAt: null },
        { ...gone, depositId: "dep_3", seenAt: at("01"), confirmedAt: at("02"), orphanedAt: at("03") },
      ],
      orphanedDepositsLeftOut: 3,
    };
    const Again = () => (
      <>
        <h1>One</h1>
        <Timeline projectId={PROJECT} payment={payment} />
      </>
    );
    await show(Again, { path: "payments/pay_1", answers: { [`GET ${BASE}`]: { ...nothing, events: [] } } });
    const section = await screen.findByRole("region", { name: "Timeline" });
    const entries = await within(section).findAllByRole("listitem");
    const said = ["Confirmed", "Detected", "Orphaned"];
    expect(entries.map((one) => said.find((word) => one.textContent.includes(word)))).toEqual([
      "Confirmed",
      "Detected",
      "Orphaned",
      "Detected",
      "Orphaned",
      "Confirmed",
      "Detected",
      undefined,
    ]);
    expect(new Set(entriesOf(payment, []).map((one) => one.key)).size).toBe(entries.length);
    expect(within(section).getByText("5 earlier deposits are not shown here.")).toBeTruthy();
  });

  it("says where there are older events, and that one is sent again", async () => {
    const [delivered] = EVENT.deliveries;
    let now: object = delivered;
    const answers = {
      [`GET ${BASE}`]: () => json({ ...nothing, limit: 100, total: 101, events: [{ ...EVENT, deliveries: [now] }] }),
      [`POST ${BASE}/evt_1/redeliver`]: () => {
        now = { ...delivered, status: "pending", attempts: 0, deliveredAt: null };
        return json({ success: true, queued: 1 });
      },
    };
    await show(Others, { path: "payouts/po_1", answers });
    const all = await screen.findByRole("link", { name: "Show all" });
    expect(all.getAttribute("href")).toBe(`/${PROJECT}/events?resourceId=po_1`);
    const again = screen.getByRole("button", { name: "Send again" });
    const status = screen.getByText("Delivered");
    expect(status.compareDocumentPosition(again)).toBe(Node.DOCUMENT_POSITION_FOLLOWING);
    fireEvent.click(again);
    expect(await screen.findByText("It is being sent again.")).toBeTruthy();
  });

  it("offers to send again what is not on its way to everybody", async () => {
    const [delivered] = EVENT.deliveries;
    const told = (eventId: string, ...statuses: string[]) => ({
      ...EVENT,
      eventId,
      event: eventId,
      deliveries: statuses.map((status) => ({ ...delivered, deliveryId: `${eventId} ${status}`, status })),
    });
    const events = [told("evt_waits", "pending", "paused"), told("evt_some", "pending", "dropped"), told("evt_none")];
    await show(Others, { path: "payouts/po_1", answers: { [`GET ${BASE}`]: { ...nothing, total: 3, events } } });
    const entries = await screen.findAllByRole("listitem");
    expect(entries.map((one) => within(one).queryByRole("button", { name: "Send again" }) !== null)).toEqual([
      false,
      true,
      false,
    ]);
  });
});
