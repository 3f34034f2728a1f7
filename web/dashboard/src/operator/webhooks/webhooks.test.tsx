import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, nothing, one, showOperator, type Answers } from "../../testing/render";

import { DeliveryPage } from "./DeliveryPage";
import { WebhooksPage } from "./WebhooksPage";

const FAILING = "/api/admin/webhooks/failing";
const DELIVERIES = "/api/admin/webhooks/deliveries";
const MERCHANTS = "/api/admin/merchants";

const target = (number: number) => ({
  merchantId: `mrc_${String(number)}`,
  merchantName: `Shop ${String(number)}`,
  projectId: `prj_${String(number)}`,
  projectName: "Till",
  mode: "live",
  endpointId: "whe_1",
  webhookId: null,
  url: "https://shop.example/hook",
  failing: 3,
  failingSince: "2026-01-01T12:00:00.000Z",
  nextAttemptAt: "2026-01-01T12:05:00.000Z",
  lastAttempt: { attemptedAt: "2026-01-01T12:00:00.000Z", statusCode: 503, error: null },
});
const DELIVERY = {
  ...target(7),
  deliveryId: "dlv_1",
  eventId: null,
  event: "payment.paid",
  resourceId: "pay_1",
  status: "failing",
  attempts: 2,
  createdAt: "2026-01-01T12:00:00.000Z",
  deliveredAt: null,
};
const ANSWERS: Answers = {
  [`GET ${FAILING}`]: ({ url }: Request) => {
    const page = Number(new URL(url).searchParams.get("page"));
    return json({ ...nothing, page, total: 26, endpoints: [target(page)] });
  },
  [`GET ${DELIVERIES}`]: { ...one, deliveries: [DELIVERY] },
  [`GET ${MERCHANTS}`]: {
    ...one,
    merchants: [{ merchantId: "mrc_7", name: "Nordlicht", email: "ada@nordlicht.example" }],
  },
};

/** Return what was asked for last at a path. */
function asked(sent: readonly Request[], path: string): Record<string, string> {
  const last = sent.findLast(({ url }) => new URL(url).pathname === path);
  return Object.fromEntries(new URL(last?.url ?? location.href).searchParams);
}

async function chooseMerchant(field: HTMLElement): Promise<void> {
  fireEvent.click(field);
  fireEvent.change(field, { target: { value: "nord" } });
  // The page may have another field like it.
  const offered = within(await waitFor(() => listOf(field)));
  fireEvent.click(await offered.findByRole("option", { name: /Nordlicht/, hidden: true }));
}

function listOf(field: HTMLElement): HTMLElement {
  const list = document.getElementById(field.getAttribute("aria-controls") ?? "");
  if (list === null) throw new Error("Nothing is offered.");
  return list;
}

it("receivers that fail have pages of their own, and lead to what fails there", async () => {
  const sent = await showOperator(WebhooksPage, {
    path: "webhooks",
    at: "webhooks?status=failing&page=2",
    permissions: ["merchants.read"],
    answers: ANSWERS,
  });
  const pages = await screen.findByRole("navigation", { name: /Failing receivers/ });
  expect(within(pages).getByText("1–1 of 26")).toBeTruthy();
  fireEvent.click(within(pages).getByRole("button", { name: "Next" }));
  expect(await screen.findByRole("link", { name: "Shop 2" })).toHaveProperty(
    "href",
    expect.stringMatching(/\/merchants\/mrc_2$/),
  );
  // The other list stays where it was.
  expect(asked(sent, DELIVERIES)).toMatchObject({ status: "failing", page: "2" });
  fireEvent.click(screen.getByRole("link", { name: "Its failing deliveries" }));
  await waitFor(() => {
    expect(asked(sent, DELIVERIES)).toMatchObject({ projectId: "prj_2", endpointId: "whe_1", page: "1" });
  });
  fireEvent.click(screen.getByRole("button", { name: "All projects" }));
  await waitFor(() => {
    expect(asked(sent, DELIVERIES)).toEqual({ limit: "25", page: "1", status: "failing" });
  });
});

it("deliveries are filtered by the merchant that is looked for, the event, and days", async () => {
  const sent = await showOperator(WebhooksPage, {
    path: "webhooks",
    at: "webhooks?from=2026-01-01&until=2026-01-31",
    answers: ANSWERS,
  });
  await screen.findByRole("table", { name: "Deliveries" });
  await chooseMerchant(screen.getByRole("combobox", { name: "Merchant" }));
  await waitFor(() => {
    expect(asked(sent, DELIVERIES)).toMatchObject({ merchantId: "mrc_7" });
    expect(asked(sent, FAILING)).toMatchObject({ merchantId: "mrc_7" });
  });
  expect(screen.getByRole<HTMLInputElement>("combobox", { name: "Merchant" }).value).toBe("Nordlicht");
  const event = screen.getByRole("combobox", { name: "Event" });
  fireEvent.click(event);
  fireEvent.change(event, { target: { value: "payout" } });
  fireEvent.click(await screen.findByRole("option", { name: "payout.failed", hidden: true }));
  await waitFor(() => {
    expect(asked(sent, DELIVERIES)).toEqual({
      limit: "25",
      page: "1",
      merchantId: "mrc_7",
      event: "payout.failed",
      from: new Date(2026, 0, 1).toISOString(),
      to: new Date(2026, 1, 1).toISOString(),
    });
  });
});

it("what was dropped is sent again to a merchant that is chosen, and not typed", async () => {
  const bodies: object[] = [];
  await showOperator(WebhooksPage, {
    path: "webhooks",
    permissions: ["webhooks.redeliver"],
    answers: {
      ...ANSWERS,
      "POST /api/admin/webhooks/redeliver": async (request) => {
        bodies.push((await request.json()) as object);
        return json({ success: true, job: { jobId: "job_1" } }, 201);
      },
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Send dropped ones again" }));
  const dialog = await screen.findByRole("dialog");
  await chooseMerchant(within(dialog).getByRole("combobox", { name: "Merchant" }));
  fireEvent.click(within(dialog).getByRole("button", { name: "Send dropped ones again" }));
  await screen.findByText("elsewhere");
  expect(bodies).toMatchObject([{ merchantId: "mrc_7" }]);
});

it.each(["Enter", "a click"])(
  "nothing is sent to all merchants with %s where one is typed and not chosen",
  async (by) => {
    const sent = await showOperator(WebhooksPage, {
      path: "webhooks",
      permissions: ["webhooks.redeliver"],
      answers: { ...ANSWERS, [`GET ${MERCHANTS}`]: { ...nothing, merchants: [] } },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Send dropped ones again" }));
    const dialog = await screen.findByRole("dialog");
    const field = within(dialog).getByRole<HTMLInputElement>("combobox", { name: "Merchant" });
    const submit = within(dialog).getByRole<HTMLButtonElement>("button", { name: "Send dropped ones again" });
    expect(within(dialog).getByText("Concerns all merchants.")).toBeTruthy();
    fireEvent.click(field);
    fireEvent.change(field, { target: { value: "nord" } });
    expect(submit.disabled).toBe(true);
    expect(within(dialog).queryByText("Concerns all merchants.")).toBeNull();
    if (by === "Enter") expect(fireEvent.keyDown(field, { key: "Enter", code: "Enter" })).toBe(false);
    fireEvent.blur(field);
    expect(field.value).toBe("nord");
    expect(within(dialog).getByText("Choose one from the list.")).toBeTruthy();
    fireEvent.click(submit);
    const form = dialog.querySelector("form");
    if (form !== null) fireEvent.submit(form);
    fireEvent.change(field, { target: { value: "" } });
    expect(submit.disabled).toBe(false);
    expect(sent.filter(({ method }) => method !== "GET")).toEqual([]);
  },
);

it("whoever was chosen is not sent to any more once another one is typed", async () => {
  await showOperator(WebhooksPage, { path: "webhooks", permissions: ["webhooks.redeliver"], answers: ANSWERS });
  fireEvent.click(await screen.findByRole("button", { name: "Send dropped ones again" }));
  const dialog = await screen.findByRole("dialog");
  const field = within(dialog).getByRole<HTMLInputElement>("combobox", { name: "Merchant" });
  const submit = within(dialog).getByRole<HTMLButtonElement>("button", { name: "Send dropped ones again" });
  await chooseMerchant(field);
  expect(await within(dialog).findByText("Concerns Nordlicht alone.")).toBeTruthy();
  fireEvent.change(field, { target: { value: "Nordl" } });
  expect([field.value, submit.disabled]).toEqual(["Nordl", true]);
  expect(within(dialog).queryByText("Concerns Nordlicht alone.")).toBeNull();
});

it.each([
  ["pay_1", ["records.read"], "/payments/pay_1"],
  ["po_1", ["records.read"], "/payouts/po_1"],
  ["whk_1", ["records.read"], null],
  ["pay_1", [], null],
] as const)("a delivery leads to what it is about, where that has a page: %s %j", async (resourceId, may, page) => {
  const delivery = { ...DELIVERY, resourceId, attempts: [], payload: {} };
  await showOperator(DeliveryPage, {
    path: "webhooks/$deliveryId",
    at: "webhooks/dlv_1",
    answers: { [`GET ${DELIVERIES}/dlv_1`]: { delivery } },
    permissions: [...may],
  });
  const about = await screen.findByText(resourceId);
  expect(about.closest("a")?.getAttribute("href") ?? null).toBe(page);
});

it.each([
  ["dropped", ["webhooks.redeliver"], true],
  ["delivered", ["webhooks.redeliver"], true],
  ["pending", ["webhooks.redeliver"], false],
  ["tested", ["webhooks.redeliver"], false],
  ["dropped", [], false],
] as const)("a delivery says whose it is, and is sent again by whoever may: %s %j", async (status, may, isOffered) => {
  let now: string = status;
  const view = () => ({ ...DELIVERY, status: now, resourceId: "pay_1", attempts: [], payload: {} });
  await showOperator(DeliveryPage, {
    path: "webhooks/$deliveryId",
    at: "webhooks/dlv_1",
    permissions: ["merchants.read", ...may],
    answers: {
      [`GET ${DELIVERIES}/dlv_1`]: () => json({ delivery: view() }),
      [`POST ${DELIVERIES}/dlv_1/redeliver`]: () => {
        now = "pending";
        return json({ delivery: view() });
      },
    },
  });
  const whose = await screen.findByRole("link", { name: DELIVERY.merchantName });
  expect(whose.getAttribute("href")).toBe(`/merchants/${DELIVERY.merchantId}`);
  const button = screen.queryByRole("button", { name: "Send again" });
  expect(button !== null).toBe(isOffered);
  if (button === null) return;
  fireEvent.click(button);
  // What is under way is not started a second time.
  await waitFor(() => {
    expect(screen.queryByRole("button", { name: "Send again" })).toBeNull();
  });
  expect(now).toBe("pending");
});
