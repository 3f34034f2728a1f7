import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { chooseLanguage } from "../../i18n";
import { json, one, PROJECT, show } from "../../testing/render";

import { PaymentList } from "./PaymentList";

const PAYMENT = {
  paymentId: "pay_1",
  orderId: "A-1",
  status: "expired",
  chain: "ethereum",
  token: "USDC",
  pricingMode: "crypto",
  amount: "5",
  expectedAmount: "5",
  receivedAmount: "0",
  createdAt: "2026-01-01T12:00:00.000Z",
};
const LIST = `/api/dashboard/projects/${PROJECT}/payments`;

afterEach(async () => {
  await chooseLanguage("en");
});

async function shown() {
  const sent = await show(PaymentList, {
    path: "payments",
    answers: { [`GET ${LIST}`]: () => json({ ...one, total: 60, payments: [PAYMENT] }) },
  });
  await screen.findByText("A-1");
  return () => sent.map(({ url }) => new URL(url)).filter(({ pathname }) => pathname === LIST);
}

it("asks once for what is filtered, sorted or turned to, though it asks before the page draws", async () => {
  const asked = await shown();
  expect(asked()).toHaveLength(1);
  const acts: [() => void, Record<string, string>][] = [
    [() => fireEvent.click(screen.getByRole("button", { name: "Next" })), { page: "2" }],
    [
      () => fireEvent.change(screen.getByLabelText("Order number"), { target: { value: "A-" } }),
      { page: "1", orderId: "A-" },
    ],
    [() => fireEvent.click(screen.getByRole("button", { name: /Created/ })), { orderId: "A-", sort: "createdAt" }],
  ];
  for (const [number, [doIt, wanted]] of acts.entries()) {
    doIt();
    await waitFor(() => {
      expect(Object.fromEntries(asked().at(-1)?.searchParams ?? [])).toMatchObject(wanted);
    });
    await act(() => new Promise((resolve) => setTimeout(resolve, 50)));
    expect(asked()).toHaveLength(number + 2);
  }
});

it("says rows that are on the screen in another language as soon as that is chosen", async () => {
  // Its texts are there, as they are loaded by what a test answers afterwards.
  for (const language of ["de", "en"] as const) await chooseLanguage(language);
  await shown();
  const rows = () => within(screen.getByRole("table"));
  expect(rows().getByText("Expired")).toBeTruthy();
  const age = document.querySelector("time")?.textContent;
  await act(() => chooseLanguage("de"));
  expect(await rows().findByText("Abgelaufen")).toBeTruthy();
  expect(rows().queryByText("Expired")).toBeNull();
  expect(document.querySelector("time")?.textContent).not.toBe(age);
});
