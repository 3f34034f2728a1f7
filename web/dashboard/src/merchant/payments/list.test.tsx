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

async function shown(at = "payments") {
  const sent = await show(PaymentList, {
    path: "payments",
    at,
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

it("filters by a state with one press or an arrow key, and takes that back again", async () => {
  const asked = await shown();
  const tab = (name: string) => screen.getByRole("tab", { name });
  const chosen = () => screen.getByRole("tab", { selected: true }).textContent;
  const last = () => asked().at(-1)?.searchParams.get("status");
  expect(chosen()).toBe("All");
  fireEvent.click(tab("Underpaid"));
  await waitFor(() => {
    expect([chosen(), last()]).toEqual(["Underpaid", "underpaid"]);
  });
  // The list that it is of, and the filter that it sets: they are one.
  expect(document.getElementById(tab("Underpaid").getAttribute("aria-controls") ?? "")).toBe(
    screen.getByRole("tabpanel", { name: "Payments" }),
  );
  const filter = () => screen.getByRole<HTMLInputElement>("combobox", { name: "Status" }).value;
  expect(filter()).toBe("Underpaid");
  const keys = [
    ["ArrowLeft", "Paid", "Paid"],
    ["End", "Refunded", "Refunded"],
    ["ArrowRight", "All", ""],
    ["ArrowRight", "Pending", "Pending"],
    ["Home", "All", ""],
  ] as const;
  tab("Underpaid").focus();
  for (const [key, name, filtered] of keys) {
    fireEvent.keyDown(document.activeElement ?? document.body, { key });
    await waitFor(() => {
      expect([chosen(), document.activeElement?.textContent, filter()]).toEqual([name, name, filtered]);
    });
  }
  // One of them takes the tab key.
  expect(screen.getAllByRole("tab").filter((one) => one.tabIndex === 0)).toEqual([tab("All")]);
});

it("chooses no tab where something else is filtered by, and follows the page's direction", async () => {
  const asked = await shown("payments?status=detected");
  expect(screen.queryByRole("tab", { selected: true })).toBeNull();
  expect(screen.getAllByRole("tab").map(({ tabIndex }) => tabIndex)).toEqual([0, -1, -1, -1, -1, -1, -1, -1]);
  document.documentElement.dir = "rtl";
  try {
    screen.getByRole("tab", { name: "All" }).focus();
    fireEvent.keyDown(screen.getByRole("tab", { name: "All" }), { key: "ArrowLeft" });
    await waitFor(() => {
      expect(asked().at(-1)?.searchParams.get("status")).toBe("pending");
    });
  } finally {
    document.documentElement.dir = "ltr";
  }
});
