import { cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { chooseLanguage } from "../../i18n";
import { DESCRIBED } from "../../testing/described";
import { json, nothing, one, PROJECT, refused, show } from "../../testing/render";

import { PaymentPage } from "./PaymentPage";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const PAYMENT = `${BASE}/payments/pay_1`;
const LIST = `${BASE}/payments/refunds/list`;
const { payment } = DESCRIBED.merchant.example(PAYMENT) as { readonly payment: { readonly chain: string } };
const PAID = {
  ...payment,
  paymentId: "pay_1",
  status: "refunded",
  token: "USDT",
  receivedAmount: "20.5",
  refundedAmount: "4",
};
const { refunds } = DESCRIBED.merchant.example(LIST) as { readonly refunds: readonly object[] };

type Shown = Parameters<typeof show>[1];

async function open(answers: Shown["answers"] = {}, changed: Pick<Shown, "member"> = {}) {
  return await show(PaymentPage, {
    ...changed,
    path: "payments/$paymentId",
    at: "payments/pay_1",
    answers: {
      [`GET ${PAYMENT}`]: { success: true, payment: PAID },
      [`GET ${LIST}`]: { ...nothing, refunds: [] },
      [`GET ${BASE}/events`]: { ...nothing, events: [] },
      ...answers,
    },
  });
}

async function refund(to: string, amount: string): Promise<HTMLElement> {
  fireEvent.click(screen.getByRole("button", { name: "Refund" }));
  const dialog = await screen.findByRole("dialog", { name: "Send money back" });
  fireEvent.change(within(dialog).getByLabelText(/^To address/), { target: { value: to } });
  fireEvent.change(within(dialog).getByLabelText(/^Amount/), { target: { value: amount } });
  fireEvent.click(within(dialog).getByRole("button", { name: "Refund" }));
  return dialog;
}

async function gone(): Promise<void> {
  await waitFor(() => {
    expect(screen.queryByRole("dialog")).toBeNull();
  });
}

describe("a refund", () => {
  it("is sent under one key where its answer was lost and the dialog closed, and under another one afterwards", async () => {
    const bodies: { readonly idempotencyKey: string; readonly amount: string }[] = [];
    await open({
      [`POST ${PAYMENT}/refund`]: async (request) => {
        bodies.push((await request.json()) as (typeof bodies)[number]);
        if (bodies.length === 1) throw new TypeError("Failed to fetch");
        return json({ success: true, refund: refunds[0] }, 201);
      },
    });
    await screen.findByRole("button", { name: "Refund" });
    const dialog = await refund("0x12", "10");
    expect(await within(dialog).findByText("NO_ANSWER_ONCE")).toBeTruthy();
    fireEvent.click(within(dialog).getByRole("button", { name: "Cancel" }));
    await gone();
    await refund("0x12", "10");
    await gone();
    await refund("0x12", "1");
    await gone();
    expect(bodies.map((body) => body.amount)).toEqual(["10", "10", "1"]);
    expect(bodies[1]?.idempotencyKey).toBe(bodies[0]?.idempotencyKey);
    expect(bodies[2]?.idempotencyKey).not.toBe(bodies[0]?.idempotencyKey);
  });

  it("says to whoever has no second factor that it needs one, before anything is typed", async () => {
    await open({}, { member: { hasTwoFactor: false } });
    fireEvent.click(await screen.findByRole("button", { name: "Refund" }));
    const note = within(await screen.findByRole("dialog")).getByRole("note");
    const href = within(note).getByRole("link", { name: "Security" }).getAttribute("href");
    expect(href).toMatch(new RegExp(`^/${PROJECT}/security\\?next=%2F${PROJECT}%2Fpayments%2F`));
  });

  it("says what an amount is taken for whose dot may be meant to group thousands", async () => {
    await chooseLanguage("de");
    await open({});
    fireEvent.click(await screen.findByRole("button", { name: "Rückerstatten" }));
    const dialog = within(await screen.findByRole("dialog"));
    const amount = dialog.getByLabelText(/^Betrag/);
    fireEvent.change(amount, { target: { value: "1.000" } });
    const words = /Das ist 1, nicht 1\.000\./;
    const said = dialog.getByText(words, { selector: "strong" });
    expect(amount.getAttribute("aria-describedby")).toBe(said.parentElement?.id);
    expect(dialog.getByText(words, { selector: "[aria-live=polite]" })).toBeTruthy();
    fireEvent.change(amount, { target: { value: "1000" } });
    expect(dialog.queryByText(/nicht 1\.000/)).toBeNull();
    await chooseLanguage("en");
  });

  it("marks the field of which the API says that it is wrong, until something is typed", async () => {
    await open({
      [`POST ${PAYMENT}/refund`]: () => {
        const details = [{ field: "amount", message: "Nothing of this payment is left to refund." }];
        return json({ success: false, error: "The request is not valid.", code: "VALIDATION_ERROR", details }, 400);
      },
    });
    await screen.findByRole("button", { name: "Refund" });
    const dialog = within(await refund("0x12", ""));
    const amount = dialog.getByLabelText(/^Amount/);
    await waitFor(() => {
      expect(amount.getAttribute("aria-invalid")).toBe("true");
    });
    expect(dialog.getByLabelText(/^To address/).getAttribute("aria-invalid")).not.toBe("true");
    fireEvent.change(amount, { target: { value: "1" } });
    expect(amount.getAttribute("aria-invalid")).not.toBe("true");
  });

  it("goes to the customer's tag where the chain has some", async () => {
    const bodies: { readonly toTag?: string }[] = [];
    const chain = (hasTags: boolean) => ({ chain: PAID.chain, name: "A chain", hasTags });
    for (const hasTags of [true, false]) {
      await open({
        "GET /api/public/chains": { success: true, chains: [chain(hasTags)] },
        [`POST ${PAYMENT}/refund`]: async (request) => {
          bodies.push((await request.json()) as { readonly toTag?: string });
          return json({ success: true, refund: refunds[0] }, 201);
        },
      });
      fireEvent.click(await screen.findByRole("button", { name: "Refund" }));
      const dialog = within(await screen.findByRole("dialog", { name: "Send money back" }));
      fireEvent.change(dialog.getByLabelText(/^To address/), { target: { value: "rSomebody" } });
      if (hasTags) fireEvent.change(await dialog.findByLabelText(/^Tag/), { target: { value: " 4711 " } });
      else await expect.poll(() => dialog.queryByLabelText(/^Tag/)).toBeNull();
      fireEvent.click(dialog.getByRole("button", { name: "Refund" }));
      await gone();
      cleanup();
    }
    expect(bodies.map(({ toTag }) => toTag)).toEqual(["4711", undefined]);
  });

  it("says how much is left to be sent, not how much was received", async () => {
    await open();
    fireEvent.click(await screen.findByRole("button", { name: "Refund" }));
    const amount = within(await screen.findByRole("dialog")).getByLabelText(/^Amount/);
    const described = document.getElementById(amount.getAttribute("aria-describedby")?.split(" ")[0] ?? "");
    expect(described?.textContent).toMatch(/everything that is left:\s*16\.5/);
  });
});

describe("the refunds of a payment", () => {
  it("are asked for by the payment, and shown all", async () => {
    const sent = await open({ [`GET ${LIST}`]: { ...one, refunds: [{ ...refunds[0], reason: "a scratch" }] } });
    expect(await screen.findByText("a scratch")).toBeTruthy();
    const asked = sent.map(({ url }) => new URL(url)).find(({ pathname }) => pathname === LIST);
    expect(asked?.searchParams.get("paymentId")).toBe("pay_1");
  });

  it("say that they could not be read again, beside what was there, and so do the events", async () => {
    let isBroken = false;
    const broken = (body: object) => () => (isBroken ? refused(503, "UNAVAILABLE") : json(body));
    await open({
      [`GET ${LIST}`]: broken({ ...one, refunds: [{ ...refunds[0], reason: "a scratch" }] }),
      [`GET ${BASE}/events`]: broken({ ...nothing, events: [] }),
      [`POST ${PAYMENT}/refund`]: () => {
        isBroken = true;
        return json({ success: true, refund: refunds[0] }, 201);
      },
    });
    expect(await screen.findByText("a scratch")).toBeTruthy();
    const timeline = within(screen.getByRole("region", { name: "Timeline" }));
    expect(await timeline.findByText("Created")).toBeTruthy();
    await refund("0x12", "1");
    await gone();
    for (const name of ["Refunds", "Timeline"]) {
      const section = within(screen.getByRole("region", { name }));
      expect(await section.findByText("UNAVAILABLE")).toBeTruthy();
    }
    expect(screen.getByText("a scratch")).toBeTruthy();
  });
});
