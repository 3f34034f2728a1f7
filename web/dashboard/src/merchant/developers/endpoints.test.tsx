import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, nothing, one, PROJECT, refused, show, type Answers } from "../../testing/render";

import { EndpointPage } from "./EndpointPage";
import type { Delivery, Endpoint } from "./queries";
import { WebhooksPage } from "./WebhooksPage";

const LIST = `/api/merchant/projects/${PROJECT}/webhook-endpoints`;
const ONE = `${LIST}/whe_abc123`;
const ALL_DELIVERIES = `GET /api/dashboard/projects/${PROJECT}/deliveries`;
const SECRET = "5c".repeat(32);
const MOMENT = "2026-01-01T12:00:00.000Z";
const ENDPOINT: Endpoint = {
  endpointId: "whe_abc123",
  url: "https://books.example/hook",
  events: ["payment.paid", "payment.overpaid"],
  paused: false,
  secretRotatedAt: MOMENT,
  previousSecretUntil: null,
  signatureCheck: null,
  createdAt: MOMENT,
};
const DELIVERY: Delivery = {
  deliveryId: "dlv_1",
  eventId: "evt_1",
  endpointId: "whe_abc123",
  event: "payment.paid",
  resourceId: "pay_1",
  url: ENDPOINT.url,
  status: "delivered",
  createdAt: MOMENT,
  deliveredAt: MOMENT,
  nextAttemptAt: null,
  payload: {},
  attempts: [{ number: 1, attemptedAt: MOMENT, durationMs: 31, statusCode: 204, error: null, responseBody: null }],
};
const answers: Answers = {
  [`GET ${LIST}`]: { ...one, endpoints: [ENDPOINT] },
  [`GET ${ONE}`]: { endpoint: ENDPOINT },
  [`GET ${ONE}/deliveries`]: { ...one, deliveries: [DELIVERY] },
};
const page = { path: "webhooks/endpoints/$endpointId", at: "webhooks/endpoints/whe_abc123" };
const others = { [ALL_DELIVERIES]: { ...nothing, deliveries: [] } };

/** Open the dialog of one of the page's buttons. */
async function open(name: string) {
  fireEvent.click(await screen.findByRole("button", { name }));
  return within(await screen.findByRole("dialog"));
}

const isClosed = () => expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();

describe("where events go", () => {
  it("shows the project's own URL and each endpoint with what it hears of", async () => {
    const many = { ...ENDPOINT, endpointId: "whe_2", url: "https://all.example", paused: true };
    const events = ["payment.paid", "payment.expired", "payment.failed"];
    const endpoints = [ENDPOINT, { ...many, events: [] }, { ...many, endpointId: "whe_3", events }];
    await show(WebhooksPage, { path: "webhooks", answers: { ...others, [`GET ${LIST}`]: { ...one, endpoints } } });
    const table = await screen.findByRole("table", { name: "Where events go" });
    expect(within(table).getByText("No URL is set")).toBeTruthy();
    expect(within(table).getByText("payment.paid, payment.overpaid")).toBeTruthy();
    expect(within(table).getByText("3 events")).toBeTruthy();
    expect(within(table).getAllByText("Paused")).toHaveLength(2);
    const link = within(table).getByRole("link", { name: ENDPOINT.url });
    expect(link.getAttribute("href")).toBe(`/${PROJECT}/webhooks/endpoints/whe_abc123`);
  });

  it("takes another endpoint, says in the dialog what is wrong with it, and shows its secret until one is done", async () => {
    const bodies: unknown[] = [];
    await show(WebhooksPage, {
      path: "webhooks",
      answers: {
        ...others,
        [`GET ${LIST}`]: { ...nothing, endpoints: [] },
        [`POST ${LIST}`]: async (request) => {
          bodies.push(await request.json());
          if (bodies.length === 1) return refused(409, "TOO_MANY_ENDPOINTS");
          return json({ endpoint: ENDPOINT, webhookSecret: SECRET }, 201);
        },
      },
    });
    const dialog = await open("Add an endpoint");
    fireEvent.change(dialog.getByLabelText(/^URL/), { target: { value: " https://books.example/hook " } });
    fireEvent.click(dialog.getByRole("button", { name: "Only some" }));
    const act = dialog.getByRole<HTMLButtonElement>("button", { name: "Add an endpoint" });
    // None chosen would be all.
    expect(act.disabled).toBe(true);
    fireEvent.click(dialog.getByRole("checkbox", { name: "payment.overpaid" }));
    fireEvent.click(dialog.getByRole("checkbox", { name: "payment.paid" }));
    fireEvent.click(act);
    expect(await dialog.findByText("TOO_MANY_ENDPOINTS")).toBeTruthy();
    fireEvent.click(act);
    await isClosed();
    expect(bodies).toEqual(
      Array(2).fill({ url: "https://books.example/hook", events: ["payment.paid", "payment.overpaid"] }),
    );
    expect(screen.getByText(SECRET)).toBeTruthy();
    expect(within(screen.getByRole("alert")).queryByText(SECRET)).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: "Done" }));
    expect(screen.queryByText(SECRET)).toBeNull();
  });

  it("says of a URL that is told already that it would be told twice", async () => {
    const answers = { ...others, [`GET ${LIST}`]: { ...one, endpoints: [ENDPOINT] } };
    const project = { paymentWebhookUrl: "https://shop.example/hook" };
    await show(WebhooksPage, { path: "webhooks", answers, project });
    await screen.findByRole("link", { name: ENDPOINT.url });
    const dialog = await open("Add an endpoint");
    for (const [url, isTwice] of [
      [ENDPOINT.url, true],
      [`${ENDPOINT.url}/2`, false],
      [` ${project.paymentWebhookUrl}`, true],
    ] as const) {
      fireEvent.change(dialog.getByLabelText(/^URL/), { target: { value: url } });
      expect(dialog.queryByText(/^Events go to this URL already/, { selector: "[role=status]" }) !== null).toBe(
        isTwice,
      );
    }
  });

  it("offers no endpoint to whoever may not manage webhooks", async () => {
    const shown = { ...others, [`GET ${LIST}`]: { ...one, endpoints: [ENDPOINT] } };
    await show(WebhooksPage, { path: "webhooks", permissions: ["read"], answers: shown });
    expect(await screen.findByText(ENDPOINT.url)).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Add an endpoint" })).toBeNull();
    expect(screen.queryByRole("button", { name: "Send a test" })).toBeNull();
  });

  it.each([null, "https://shop.example/hook"])("offers a test where the project has a URL: %s", async (url) => {
    const shown = { ...others, [`GET ${LIST}`]: { ...one, endpoints: [ENDPOINT] } };
    await show(WebhooksPage, { path: "webhooks", project: { paymentWebhookUrl: url }, answers: shown });
    expect(await screen.findByText(ENDPOINT.url)).toBeTruthy();
    expect(screen.queryAllByRole("button", { name: "Send a test" })).toHaveLength(url === null ? 0 : 1);
  });
});

describe("an endpoint", () => {
  it("has a log of its own, by status and event, each delivery with its answer and a page", async () => {
    const sent = await show(EndpointPage, { ...page, at: `${page.at}?status=delivered&event=payment.paid`, answers });
    const log = await screen.findByRole("table", { name: "Deliveries" });
    expect(within(log).getByText("204 · 31 ms")).toBeTruthy();
    expect(within(log).getByText("pay_1")).toBeTruthy();
    expect(within(log).getAllByRole("link")[0]?.getAttribute("href")).toBe(`/${PROJECT}/webhooks/dlv_1`);
    const asked = sent.find(({ url }) => url.includes("/deliveries"));
    expect(new URL(asked?.url ?? "").search).toBe("?limit=25&page=1&status=delivered&event=payment.paid");
    fireEvent.click(screen.getByRole("button", { name: "Download CSV" }));
    const saved = () => sent.find(({ url }) => url.includes("format=csv"))?.url ?? "";
    await expect.poll(saved, { timeout: 20_000 }).toContain(`${ONE}/deliveries?format=csv&status=delivered`);
  });

  it("says where it was sent nothing yet, and offers nothing to whoever may not manage it", async () => {
    const empty = { ...answers, [`GET ${ONE}/deliveries`]: { ...nothing, deliveries: [] } };
    await show(EndpointPage, { ...page, permissions: ["read"], answers: empty });
    expect(await screen.findByText("Nothing has been sent yet")).toBeTruthy();
    for (const name of ["Change", "Pause", "Delete", "Send a test"]) {
      expect(screen.queryByRole("button", { name })).toBeNull();
    }
  });

  it("is changed in what is different alone", async () => {
    const bodies: unknown[] = [];
    await show(EndpointPage, {
      ...page,
      answers: {
        ...answers,
        [`PATCH ${ONE}`]: async (request) => {
          bodies.push(await request.json());
          return json({ endpoint: ENDPOINT });
        },
      },
    });
    let dialog = await open("Change");
    fireEvent.change(dialog.getByLabelText(/^URL/), { target: { value: "https://books.example/2" } });
    fireEvent.click(dialog.getByRole("button", { name: "Change" }));
    await isClosed();
    dialog = await open("Change");
    fireEvent.click(dialog.getByRole("checkbox", { name: "payment.overpaid" }));
    fireEvent.click(dialog.getByRole("button", { name: "Change" }));
    await isClosed();
    dialog = await open("Change");
    fireEvent.click(dialog.getByRole("button", { name: "All events" }));
    fireEvent.click(dialog.getByRole("button", { name: "Change" }));
    await isClosed();
    expect(bodies).toEqual([{ url: "https://books.example/2" }, { events: ["payment.paid"] }, { events: [] }]);
  });

  it("says of another URL that is told already that it would be told twice, and nothing of its own", async () => {
    const other = { ...ENDPOINT, endpointId: "whe_2", url: "https://all.example" };
    const project = { paymentWebhookUrl: "https://shop.example/hook" };
    const known = { ...answers, [`GET ${LIST}`]: { ...one, endpoints: [ENDPOINT, other] } };
    await show(EndpointPage, { ...page, answers: known, project });
    const dialog = await open("Change");
    const url = dialog.getByLabelText(/^URL/);
    const said = () => dialog.queryByText(/^Events go to this URL already/, { selector: "[role=status]" }) !== null;
    fireEvent.change(url, { target: { value: ` ${other.url}` } });
    await expect.poll(said).toBe(true);
    for (const [typed, isTwice] of [
      [ENDPOINT.url, false],
      [project.paymentWebhookUrl, true],
      [`${other.url}/2`, false],
    ] as const) {
      fireEvent.change(url, { target: { value: typed } });
      expect(said()).toBe(isTwice);
    }
  });

  it("is paused and resumed", async () => {
    const bodies: unknown[] = [];
    let paused = false;
    await show(EndpointPage, {
      ...page,
      answers: {
        ...answers,
        [`GET ${ONE}`]: () => json({ endpoint: { ...ENDPOINT, paused } }),
        [`PATCH ${ONE}`]: async (request) => {
          const body = (await request.json()) as { paused: boolean };
          bodies.push(body);
          ({ paused } = body);
          return json({ endpoint: ENDPOINT });
        },
      },
    });
    fireEvent.click((await open("Pause")).getByRole("button", { name: "Pause" }));
    await isClosed();
    fireEvent.click((await open("Resume")).getByRole("button", { name: "Resume" }));
    await isClosed();
    expect(bodies).toEqual([{ paused: true }, { paused: false }]);
  });

  it("gets another secret, at once or with an overlap, of which both secrets' fate is said", async () => {
    const bodies: unknown[] = [];
    await show(EndpointPage, {
      ...page,
      answers: {
        ...answers,
        [`GET ${ONE}`]: { endpoint: { ...ENDPOINT, previousSecretUntil: "2036-01-01T12:00:00.000Z" } },
        [`POST ${ONE}/rotate-secret`]: async (request) => {
          bodies.push(await request.json());
          if (bodies.length === 1) return Promise.reject(new TypeError("Failed to fetch"));
          return json({ message: "", webhookSecret: SECRET, rotatedAt: MOMENT });
        },
      },
    });
    const dialog = await open("Replace the signing secret");
    expect(dialog.getByText(/invalid at once/)).toBeTruthy();
    expect(dialog.getByText(/The secret before the present one/)).toBeTruthy();
    fireEvent.click(dialog.getByRole("button", { name: "One day" }));
    expect(dialog.getByText(/For a day both sign: .*X-Webhook-Signature-Previous/)).toBeTruthy();
    fireEvent.change(dialog.getByLabelText(/abc123/), { target: { value: "abc123" } });
    const act = dialog.getByRole("button", { name: "Replace it" });
    fireEvent.click(act);
    expect(await dialog.findByText(/may have been replaced/)).toBeTruthy();
    fireEvent.click(act);
    await isClosed();
    // Sent again under the same key, it is the same secret: the one before goes on signing beside it.
    expect(bodies[0]).toEqual({ overlapMinutes: 1440, idempotencyKey: expect.any(String) as string });
    expect(bodies[1]).toEqual(bodies[0]);
    expect(screen.getByText(SECRET)).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Done" }));
    expect(screen.queryByText(SECRET)).toBeNull();
  });

  it("is deleted when its last characters are typed", async () => {
    const sent = await show(EndpointPage, { ...page, answers: { ...answers, [`DELETE ${ONE}`]: { success: true } } });
    const dialog = await open("Delete");
    const act = dialog.getByRole<HTMLButtonElement>("button", { name: "Delete" });
    expect(act.disabled).toBe(true);
    fireEvent.change(dialog.getByLabelText(/abc123/), { target: { value: "abc123" } });
    fireEvent.click(act);
    expect(await screen.findByText("elsewhere")).toBeTruthy();
    expect(sent.filter(({ method }) => method === "DELETE")).toHaveLength(1);
  });

  it("is sent a test, and says what was answered", async () => {
    const bodies: unknown[] = [];
    await show(EndpointPage, {
      ...page,
      answers: {
        ...answers,
        [`POST ${ONE}/test`]: async (request) => {
          bodies.push(await request.json());
          return json({
            delivered: false,
            statusCode: 401,
            durationMs: 12,
            responseBody: "who are you",
            error: "HTTP 401",
          });
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Send a test" }));
    expect(await screen.findByText("who are you")).toBeTruthy();
    expect(bodies).toEqual([{ event: "payment.paid" }]);
  });
});
