import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, nothing, one, PROJECT, projectOf, refused, show, type Answers } from "../../testing/render";

import { DeliveryPage } from "./DeliveryPage";
import { EndpointPage } from "./EndpointPage";
import type { SignatureCheck } from "./Verified";
import { WebhooksPage } from "./WebhooksPage";

const ONE = `/api/merchant/projects/${PROJECT}/webhook-endpoints/whe_1`;
const MOMENT = "2026-01-01T12:00:00.000Z";
const page = { path: "webhooks/endpoints/$endpointId", at: "webhooks/endpoints/whe_1" };

const answers = (check: SignatureCheck["result"] | null): Answers => ({
  [`GET ${ONE}`]: {
    endpoint: {
      endpointId: "whe_1",
      url: "https://books.example/hook",
      events: [],
      paused: false,
      secretRotatedAt: MOMENT,
      previousSecretUntil: null,
      signatureCheck: check === null ? null : { result: check, checkedAt: MOMENT },
      createdAt: MOMENT,
    },
  },
  [`GET ${ONE}/deliveries`]: { ...nothing, deliveries: [] },
});
const answered = (deliveryId: string, statusCode: number | null) => ({
  deliveryId,
  statusCode,
  durationMs: 9,
  responseBody: null,
  error: statusCode === null ? "cannot connect" : null,
});

describe("whether a server checks signatures", () => {
  it.each([
    ["verified", "Verified", /refused what was not/],
    ["unchecked", "Does not check", /whoever knows the URL/],
    ["refused", "Refuses genuine ones", /may have another secret/],
    ["unreachable", "No answer", /did not answer/],
    ["unclear", "Unclear", /should be a 4xx status/],
  ] as const)("is said where it is %s", async (result, chip, words) => {
    await show(EndpointPage, { ...page, answers: answers(result) });
    const section = within(await screen.findByRole("region", { name: "Does this server check signatures?" }));
    expect(section.getByText(chip)).toBeTruthy();
    expect(section.getByText(words)).toBeTruthy();
    // The code is in the way of nobody who looks for deliveries.
    const code = section.getByText(/hmac\.compare_digest/).closest("details");
    expect(code?.open).toBe(false);
    expect(code?.querySelector("summary")?.textContent).toBe("How a server checks");
  });

  it("is found out when it is asked for, with what both tests were answered", async () => {
    let check: SignatureCheck["result"] | null = null;
    await show(EndpointPage, {
      ...page,
      answers: {
        ...answers(null),
        [`GET ${ONE}`]: () => json(answers(check)[`GET ${ONE}`] as object),
        [`POST ${ONE}/check`]: () => {
          check = "verified";
          const told = { genuine: answered("dlv_1", 204), forged: answered("dlv_2", 401) };
          return json({ result: "verified", checkedAt: MOMENT, kept: true, ...told });
        },
      },
    });
    expect(await screen.findByText("Not checked")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Check it now" }));
    expect(await screen.findByText("Verified")).toBeTruthy();
    const forged = screen.getByRole("link", { name: "401 · 9 ms" });
    expect(forged.getAttribute("href")).toBe(`/${PROJECT}/webhooks/dlv_2`);
    expect(screen.getByRole("link", { name: "204 · 9 ms" })).toBeTruthy();
  });

  it("says that a result is of what was before, and why there is none", async () => {
    let asked = 0;
    await show(EndpointPage, {
      ...page,
      answers: {
        ...answers(null),
        [`POST ${ONE}/check`]: () => {
          asked += 1;
          if (asked === 1) return refused(429, "RATE_LIMITED");
          const told = { genuine: answered("dlv_1", null), forged: answered("dlv_2", null) };
          return json({ result: "unreachable", checkedAt: MOMENT, kept: false, ...told });
        },
      },
    });
    const act = await screen.findByRole("button", { name: "Check it now" });
    fireEvent.click(act);
    expect(await screen.findByText("RATE_LIMITED")).toBeTruthy();
    fireEvent.click(act);
    expect(await screen.findByText(/were changed meanwhile/)).toBeTruthy();
    expect(screen.getAllByText("cannot connect · 9 ms")).toHaveLength(2);
  });

  it("is not asked for by whoever may not manage webhooks", async () => {
    await show(EndpointPage, { ...page, permissions: ["read"], answers: answers("verified") });
    expect(await screen.findByText("Verified")).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Check it now" })).toBeNull();
  });

  it("is asked of the project's own URL where that is sent anything signed", async () => {
    const project = { paymentWebhookUrl: "https://shop.example/hook" };
    const sent = await show(WebhooksPage, {
      path: "webhooks",
      project,
      answers: {
        [`GET /api/merchant/projects/${PROJECT}/webhook-endpoints`]: { ...nothing, endpoints: [] },
        [`GET /api/dashboard/projects/${PROJECT}/deliveries`]: { ...nothing, deliveries: [] },
        "GET /api/merchant/projects": () => json({ ...one, projects: [projectOf(project)] }),
        [`POST /api/merchant/projects/${PROJECT}/check-webhook`]: () => refused(503, "UNAVAILABLE"),
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Check it now" }));
    expect(await screen.findByText("UNAVAILABLE")).toBeTruthy();
    expect(sent.some(({ url }) => url.endsWith("/check-webhook"))).toBe(true);
  });
});

describe("a delivery that was a test", () => {
  it("is not sent again", async () => {
    const delivery = {
      deliveryId: "dlv_1",
      eventId: null,
      endpointId: "whe_1",
      event: "webhook.test",
      resourceId: "whe_1",
      url: "https://books.example/hook",
      status: "tested",
      createdAt: MOMENT,
      deliveredAt: null,
      nextAttemptAt: null,
      payload: { event: "webhook.test" },
      attempts: [
        { number: 1, attemptedAt: MOMENT, durationMs: 9, statusCode: 401, error: "HTTP 401", responseBody: "no" },
      ],
    };
    await show(DeliveryPage, {
      path: "webhooks/$deliveryId",
      at: "webhooks/dlv_1",
      answers: { [`GET /api/dashboard/projects/${PROJECT}/deliveries/dlv_1`]: { delivery } },
    });
    expect(await screen.findByText("Tested")).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Send again" })).toBeNull();
    expect(screen.getByRole("link", { name: "whe_1" }).getAttribute("href")).toBe(
      `/${PROJECT}/webhooks/endpoints/whe_1`,
    );
  });
});
