import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";

import { json, one, PROJECT, show } from "../../testing/render";

import { DeliveryPage } from "./DeliveryPage";
import { EventList } from "./EventList";
import { EventPage } from "./EventPage";

const BASE = `/api/dashboard/projects/${PROJECT}/events`;
const BODY = '{"event":"payment.paid","data":{"amount":1.50,"note":"\\u00fc"}}';
const DELIVERY = {
  endpointId: null,
  url: "https://shop.example/hook",
  attempts: 6,
  deliveredAt: null,
  nextAttemptAt: null,
};
const EVENT = {
  eventId: "evt_1",
  event: "payment.paid",
  resource: "payment",
  resourceId: "pay_1",
  createdAt: "2026-01-01T12:00:00.000Z",
};
const DROPPED = { ...DELIVERY, deliveryId: "dlv_1", status: "dropped" };
const PENDING = { ...DELIVERY, deliveryId: "dlv_2", status: "pending" };

/** The answer as the gateway sends it: the body stands in it byte for byte. */
const asSent = (deliveries: readonly object[]) => () =>
  new Response(`{"success":true,"event":${JSON.stringify({ ...EVENT, deliveries }).slice(0, -1)},"payload":${BODY}}}`, {
    headers: { "Content-Type": "application/json" },
  });

describe("the events of a project", () => {
  it("are asked for by name, resource and days, which stand in the address", async () => {
    const sent = await show(EventList, {
      path: "events",
      at: "events?event=payment.paid&resourceId=pay_1&from=2026-01-01",
      answers: { [`GET ${BASE}`]: { ...one, events: [{ ...EVENT, payload: {}, deliveries: [DROPPED, PENDING] }] } },
    });
    const table = await screen.findByRole("table", { name: "Events" });
    expect(within(table).getByText("Dropped")).toBeTruthy();
    expect(within(table).getByText("Pending")).toBeTruthy();
    const asked = new URL(sent.at(-1)?.url ?? "").searchParams;
    expect([asked.get("event"), asked.get("resourceId")]).toEqual(["payment.paid", "pay_1"]);
    expect(new Date(asked.get("from") ?? "").getTime()).toBe(new Date(2026, 0, 1).getTime());
  });

  it("that failed are sent again since a time, and as long as there are more", async () => {
    const bodies: { since: string }[] = [];
    const left = [
      { queued: 10_000, more: true },
      { queued: 2, more: false },
    ];
    await show(EventList, {
      path: "events",
      at: "events?from=2026-01-01",
      answers: {
        [`GET ${BASE}`]: { ...one, events: [] },
        [`POST ${BASE}/redeliver`]: async (request) => {
          bodies.push((await request.json()) as { since: string });
          return json({ success: true, ...left[bodies.length - 1] });
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Send failed ones again" }));
    const dialog = await screen.findByRole("dialog", { name: "Send again what failed?" });
    const again = within(dialog).getByRole<HTMLButtonElement>("button", { name: "Send again" });
    fireEvent.click(again);
    expect(await within(dialog).findByText(/There are more/)).toBeTruthy();
    fireEvent.click(again);
    await waitFor(() => {
      expect(within(dialog).getByRole("status").textContent).toBe("10,002 are being sent again ");
    });
    expect(again.disabled).toBe(true);
    expect(bodies.map(({ since }) => new Date(since).getTime())).toEqual(
      Array.from({ length: 2 }, () => new Date(2026, 0, 1).getTime()),
    );
  });
});

describe("an event", () => {
  it("shows its body as it was sent, and indented for whoever reads it", async () => {
    await show(EventPage, {
      path: "events/$eventId",
      at: "events/evt_1",
      answers: { [`GET ${BASE}/evt_1`]: asSent([DROPPED]) },
    });
    expect(await screen.findByText(BODY)).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Indent" }));
    expect(screen.getByText(/"note": "ü"/)).toBeTruthy();
    const writeText = vi.fn<(text: string) => Promise<void>>(() => Promise.resolve());
    vi.stubGlobal("navigator", Object.assign(Object.create(navigator) as Navigator, { clipboard: { writeText } }));
    fireEvent.click(screen.getByRole("button", { name: "Copy it: Body, exactly as it was sent" }));
    expect(await screen.findByRole("button", { name: /^Copied/ })).toBeTruthy();
    expect(writeText.mock.calls).toEqual([[BODY]]);
    expect(screen.getByRole("link", { name: "pay_1" }).getAttribute("href")).toBe(`/${PROJECT}/payments/pay_1`);
  });

  it("is sent again to one target that it is not on its way to", async () => {
    const sent = await show(EventPage, {
      path: "events/$eventId",
      at: "events/evt_1",
      answers: {
        [`GET ${BASE}/evt_1`]: asSent([DROPPED, PENDING]),
        [`POST /api/dashboard/projects/${PROJECT}/deliveries/dlv_1/redeliver`]: { success: true, delivery: {} },
      },
    });
    const buttons = await screen.findAllByRole("button", { name: "Send again to this one" });
    expect(buttons).toHaveLength(1);
    for (const button of buttons) fireEvent.click(button);
    await waitFor(() => {
      expect(sent.filter(({ method }) => method === "POST")).toHaveLength(1);
    });
  });

  it("says what it was refused, and waits while it is on its way to all", async () => {
    await show(EventPage, {
      path: "events/$eventId",
      at: "events/evt_1",
      answers: { [`GET ${BASE}/evt_1`]: asSent([PENDING]) },
    });
    const again = await screen.findByRole<HTMLButtonElement>("button", { name: "Send again" });
    expect(again.disabled).toBe(true);
  });
});

describe("the page of a delivery", () => {
  const show1 = (payload: string, delivery: object) =>
    show(DeliveryPage, {
      path: "webhooks/$deliveryId",
      at: "webhooks/dlv_1",
      answers: {
        [`GET /api/dashboard/projects/${PROJECT}/deliveries/dlv_1`]: () =>
          new Response(
            `{"success":true,"delivery":${JSON.stringify({ ...DROPPED, attempts: [], ...delivery }).slice(0, -1)},"payload":${payload}}}`,
            { headers: { "Content-Type": "application/json" } },
          ),
      },
    });
  const OF = { eventId: "evt_1", event: "payment.held", resourceId: "dep_1", createdAt: EVENT.createdAt };
  const links = () =>
    screen
      .getAllByRole("link")
      .map((one) => one.getAttribute("href"))
      .sort();

  it("is said to be sent again only until it was sent", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    try {
      const path = `/api/dashboard/projects/${PROJECT}/deliveries/dlv_1`;
      let now: object = { status: "dropped", nextAttemptAt: null };
      await show(DeliveryPage, {
        path: "webhooks/$deliveryId",
        at: "webhooks/dlv_1",
        answers: {
          [`GET ${path}`]: () => json({ delivery: { ...DROPPED, ...OF, attempts: [], payload: {}, ...now } }),
          [`POST ${path}/redeliver`]: () => {
            now = { status: "pending", nextAttemptAt: new Date(Date.now()).toISOString() };
            return json({ success: true });
          },
        },
      });
      fireEvent.click(await screen.findByRole("button", { name: "Send again" }));
      expect(await screen.findByText("It is being sent again.")).toBeTruthy();
      now = { status: "delivered", nextAttemptAt: null };
      await vi.advanceTimersByTimeAsync(10_000);
      expect(await screen.findByText("Delivered")).toBeTruthy();
      expect(screen.queryByText("It is being sent again.")).toBeNull();
    } finally {
      vi.useRealTimers();
    }
  });

  it("leads to its event and to what that is about, and has the bytes that were signed", async () => {
    const payload = '{"event":"payment.held","data":{"resource":"deposit","paymentId":"pay_1","amount":1.50}}';
    await show1(payload, OF);
    expect(await screen.findByText(payload)).toBeTruthy();
    expect(links()).toEqual([`/${PROJECT}/events/evt_1`, `/${PROJECT}/payments/pay_1`]);
  });

  it("leads to the account of a deposit, and nowhere where there is no page", async () => {
    await show1('{"data":{"resource":"account_deposit","accountId":"acc_1"}}', OF);
    await screen.findByText("evt_1");
    expect(links()).toEqual([`/${PROJECT}/accounts/acc_1`, `/${PROJECT}/events/evt_1`]);
  });

  it.each([
    ["pending", 0],
    ["paused", 0],
    ["tested", 0],
    ["dropped", 1],
    ["delivered", 1],
  ])("offers to send it again where the API would: %s", async (status, offered) => {
    await show1("{}", { ...OF, status });
    await screen.findByText("evt_1");
    expect(screen.queryAllByRole("button", { name: "Send again" })).toHaveLength(offered);
  });
});
