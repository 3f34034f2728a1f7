import { cleanup, fireEvent, screen, within } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";

import { json, nothing, one, PROJECT, projectOf, refused, show, type Answers } from "../../testing/render";

import type { SignatureCheck } from "../developers/Verified";

import { OverviewPage } from "./OverviewPage";

const OVERVIEW = "GET /api/dashboard/overview";
const AT = `/api/dashboard/projects/${PROJECT}`;
const KEYS = `GET /api/merchant/projects/${PROJECT}/api-keys`;
const ENDPOINTS = `GET /api/merchant/projects/${PROJECT}/webhook-endpoints`;
const STATES = ["pending", "detected", "confirming", "paid", "overpaid", "underpaid", "expired", "failed", "refunded"];
const payments = {
  made: 0,
  open: 0,
  paid: 0,
  conversionPercent: null,
  states: Object.fromEntries(STATES.map((state) => [state, 0])),
};
const EMPTY = {
  currency: "usd",
  step: "day",
  attention: [],
  turnover: { payments, deposits: 0, fiat: "0.00", unpriced: 0, coins: [], series: [] },
  balances: { fiat: "0.00", unpriced: 0, coins: [] },
};

/** What the gateway answers when so much was done. */
const answers = ({ keys = 0, isPaid = false, isVerified = false }): Answers => ({
  [OVERVIEW]: EMPTY,
  [KEYS]: { keys: Array.from({ length: keys }, (_, number) => ({ keyId: `key_${number}` })) },
  [`GET ${AT}/payments`]: { ...nothing, payments: isPaid ? [{ paymentId: "pay_1" }] : [] },
  [ENDPOINTS]: { ...nothing, endpoints: isVerified ? [{ signatureCheck: { result: "verified" } }] : [] },
});
const page = { path: "overview", mode: "sandbox" } as const;
const HIDDEN = "cambist-first-steps-hidden";
const ASKED_BY_GUIDE = /api-keys|payments|webhook-endpoints/;
const COINS = {
  coins: [
    { chain: "polygon", token: "POL", enabled: true },
    { chain: "polygon", token: "USDC", enabled: false },
    { chain: "tron", token: "USDT", enabled: true },
  ],
};

afterEach(() => {
  localStorage.clear();
});

describe("the overview", () => {
  it("says in the sandbox what is left to do, and pays a payment when it is asked to", async () => {
    const bodies: unknown[] = [];
    let isPaid = false;
    const sent = await show(OverviewPage, {
      ...page,
      permissions: ["read", "payments", "webhooks", "projects.change"],
      answers: {
        ...answers({}),
        [`GET ${AT}/payments`]: () =>
          json(isPaid ? { ...one, payments: [{ paymentId: "pay_1" }] } : { ...nothing, payments: [] }),
        [`GET ${AT}/wallet/coins`]: COINS,
        [`POST ${AT}/payments`]: async (request) => {
          bodies.push(await request.json());
          return json({ payment: { paymentId: "pay_1", status: "pending", requiredConfirmations: 19 } }, 201);
        },
        [`POST ${AT}/sandbox/deposit`]: async (request) => {
          bodies.push(await request.json());
          isPaid = true;
          return json({ success: true });
        },
      },
    });
    const steps = await screen.findByRole("list", { name: "First steps" });
    expect(within(steps).getAllByText("To do")).toHaveLength(4);
    expect(within(steps).getByRole("link", { name: "API keys" }).getAttribute("href")).toBe(`/${PROJECT}/keys`);
    const asked = sent.filter(({ url }) => url.includes("/payments")).map(({ url }) => new URL(url).search);
    expect(asked).toEqual(["?status=paid&limit=1"]);
    fireEvent.click(within(steps).getByRole("button", { name: "Make a payment and pay it" }));
    await expect.poll(() => within(steps).queryAllByText("To do").length, { timeout: 20_000 }).toBe(3);
    const made = within(steps).getByRole("link", { name: "A paid payment" });
    expect(made.getAttribute("href")).toBe(`/${PROJECT}/payments/pay_1`);
    expect(bodies).toEqual([
      {
        chain: "tron",
        token: "USDT",
        pricingMode: "direct_crypto",
        amount: "10",
        idempotencyKey: expect.stringMatching(/^[\da-f-]{36}$/) as unknown,
      },
      { paymentId: "pay_1", confirmations: 19 },
    ]);
  });

  it.each([
    ["pays the same payment when the deposit is tried again", "pending", 2],
    ["pays no payment twice whose deposit was made and not answered", "paid", 1],
  ])("%s", async (_, status, expected) => {
    const keys: unknown[] = [];
    let deposits = 0;
    await show(OverviewPage, {
      ...page,
      answers: {
        ...answers({}),
        [`GET ${AT}/wallet/coins`]: COINS,
        [`POST ${AT}/payments`]: async (request) => {
          keys.push(((await request.json()) as { idempotencyKey: unknown }).idempotencyKey);
          const payment = {
            paymentId: "pay_1",
            status: deposits === 0 ? "pending" : status,
            requiredConfirmations: 19,
          };
          return json({ payment }, deposits === 0 ? 201 : 200);
        },
        [`POST ${AT}/sandbox/deposit`]: () => {
          deposits += 1;
          return deposits === 1 ? Promise.reject(new TypeError("Failed to fetch")) : json({ success: true });
        },
      },
    });
    const act = await screen.findByRole("button", { name: "Make a payment and pay it" });
    fireEvent.click(act);
    expect(await screen.findByText("NO_ANSWER")).toBeTruthy();
    fireEvent.click(act);
    await expect
      .poll(() => screen.queryByText("NO_ANSWER") === null && keys.length === 2, { timeout: 20_000 })
      .toBe(true);
    await expect.poll(() => deposits, { timeout: 20_000 }).toBe(expected);
    expect(keys[0]).toEqual(expect.any(String));
    expect(keys[1]).toBe(keys[0]);
    // Once it is paid, the next one is another.
    await expect.poll(() => act.hasAttribute("data-loading"), { timeout: 20_000 }).toBe(false);
    fireEvent.click(act);
    await expect.poll(() => keys.length, { timeout: 20_000 }).toBe(3);
    expect(keys[2]).not.toBe(keys[0]);
  });

  it("asks for another payment once the gateway has refused one", async () => {
    const keys: unknown[] = [];
    await show(OverviewPage, {
      ...page,
      answers: {
        ...answers({}),
        [`GET ${AT}/wallet/coins`]: COINS,
        [`POST ${AT}/payments`]: async (request) => {
          keys.push(((await request.json()) as { idempotencyKey: unknown }).idempotencyKey);
          return refused(400, "TOKEN_NOT_ENABLED");
        },
      },
    });
    const act = await screen.findByRole("button", { name: "Make a payment and pay it" });
    fireEvent.click(act);
    expect(await screen.findByText("TOKEN_NOT_ENABLED")).toBeTruthy();
    fireEvent.click(act);
    await expect.poll(() => keys.length, { timeout: 20_000 }).toBe(2);
    expect(keys[1]).not.toBe(keys[0]);
  });

  it("shows nothing that would move while it is not known what is left to do", async () => {
    let told: (answer: Response) => void = () => undefined;
    const endpoints = new Promise<Response>((resolve) => (told = resolve));
    const sent = await show(OverviewPage, { ...page, answers: { ...answers({}), [ENDPOINTS]: () => endpoints } });
    await expect.poll(() => sent.some(({ url }) => url.includes("/overview")), { timeout: 20_000 }).toBe(true);
    const room = await screen.findByRole("region", { name: "First steps" });
    expect(within(room).getByRole("status", { name: "Loading" })).toBeTruthy();
    expect(screen.getAllByRole("region")).toEqual([room]);
    told(json({ ...nothing, endpoints: [] }));
    expect(await screen.findByText("Nothing needs attention.")).toBeTruthy();
    expect(within(room).queryByRole("status", { name: "Loading" })).toBeNull();
  });

  it("says nothing of first steps of which nobody can say whether they are done", async () => {
    await show(OverviewPage, { ...page, answers: { ...answers({}), [KEYS]: () => refused(403, "ROLE_NOT_ALLOWED") } });
    expect(await screen.findByText("Nothing needs attention.")).toBeTruthy();
    await expect.poll(() => screen.queryByRole("region", { name: "First steps" }), { timeout: 20_000 }).toBeNull();
  });

  it("has the project's server checked, and is done with it once that refuses what is forged", async () => {
    const project = { paymentWebhookUrl: "https://shop.example/hook" };
    let result: SignatureCheck["result"] = "unchecked";
    const check = () => ({ result, checkedAt: "2026-01-01T12:00:00.000Z" });
    const delivery = { deliveryId: "dlv_1", statusCode: 200, durationMs: 9, responseBody: null, error: null };
    await show(OverviewPage, {
      ...page,
      permissions: ["read", "webhooks"],
      project,
      answers: {
        ...answers({ keys: 1, isPaid: true }),
        "GET /api/merchant/projects": () =>
          json({ projects: [projectOf({ ...project, mode: "sandbox", signatureCheck: check() })] }),
        [`POST /api/merchant/projects/${PROJECT}/check-webhook`]: () =>
          json({ ...check(), kept: true, genuine: delivery, forged: { ...delivery, deliveryId: "dlv_2" } }),
      },
    });
    const steps = await screen.findByRole("list", { name: "First steps" });
    expect(within(steps).getAllByText("To do")).toHaveLength(1);
    expect(within(steps).getByText(/hmac\.compare_digest/)).toBeTruthy();
    fireEvent.click(within(steps).getByRole("button", { name: "PHP" }));
    expect(within(steps).getByText(/hash_equals/)).toBeTruthy();
    const act = within(steps).getByRole("button", { name: "Check it now" });
    fireEvent.click(act);
    expect(await within(steps).findByText(/It took what was signed wrongly, too/)).toBeTruthy();
    expect(within(steps).getAllByText("200 · 9 ms")).toHaveLength(2);
    result = "verified";
    fireEvent.click(act);
    expect(await screen.findByRole("heading", { name: "All first steps are done" })).toBeTruthy();
  });

  it("is not done with a server that was not checked, whatever an endpoint beside it does", async () => {
    const project = { paymentWebhookUrl: "https://shop.example/hook" };
    await show(OverviewPage, { ...page, project, answers: answers({ keys: 1, isPaid: true, isVerified: true }) });
    const steps = await screen.findByRole("list", { name: "First steps" });
    expect(within(steps).getAllByText("To do")).toHaveLength(1);
  });

  it("says why a server cannot be checked", async () => {
    await show(OverviewPage, {
      ...page,
      project: { paymentWebhookUrl: "https://shop.example/hook" },
      answers: {
        ...answers({}),
        [`POST /api/merchant/projects/${PROJECT}/check-webhook`]: () => refused(429, "RATE_LIMITED"),
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Check it now" }));
    expect(await screen.findByText("RATE_LIMITED")).toBeTruthy();
  });

  it("offers no check of a server that there is not, or that is sent nothing signed", async () => {
    await show(OverviewPage, { ...page, answers: answers({}) });
    await screen.findByRole("list", { name: "First steps" });
    expect(screen.queryByRole("button", { name: "Check it now" })).toBeNull();
    cleanup();
    const project = { paymentWebhookUrl: "https://shop.example/hook", webhookSigning: false };
    await show(OverviewPage, { ...page, project, answers: answers({}) });
    await screen.findByRole("list", { name: "First steps" });
    expect(screen.queryByRole("button", { name: "Check it now" })).toBeNull();
  });

  it("says nothing of steps to whoever may not set webhooks up", async () => {
    const sent = await show(OverviewPage, { ...page, permissions: ["read", "payments"], answers: answers({}) });
    expect(await screen.findByText("Nothing needs attention.")).toBeTruthy();
    expect(screen.queryByRole("region", { name: "First steps" })).toBeNull();
    expect(sent.filter(({ url }) => ASKED_BY_GUIDE.test(url))).toHaveLength(0);
  });

  it.each([
    ["are all done", { ...page, answers: answers({ keys: 1, isPaid: true, isVerified: true }) }],
    ["are for no live project", { path: "overview", answers: answers({}) }],
  ])("says nothing of first steps that %s", async (_, shown) => {
    await show(OverviewPage, shown);
    expect(await screen.findByText("Nothing needs attention.")).toBeTruthy();
    await expect.poll(() => screen.queryByRole("region", { name: "First steps" }), { timeout: 20_000 }).toBeNull();
    expect(screen.queryByRole("list", { name: "First steps" })).toBeNull();
  });

  it("does not show steps again that were done, once the secret is replaced and the key is revoked", async () => {
    await show(OverviewPage, { ...page, answers: answers({ keys: 1, isPaid: true, isVerified: true }) });
    await expect.poll(() => localStorage.getItem(HIDDEN), { timeout: 20_000 }).toBe(JSON.stringify([PROJECT]));
    cleanup();
    const sent = await show(OverviewPage, { ...page, answers: answers({}) });
    expect(await screen.findByText("Nothing needs attention.")).toBeTruthy();
    expect(screen.queryByRole("region", { name: "First steps" })).toBeNull();
    expect(sent.filter(({ url }) => ASKED_BY_GUIDE.test(url))).toHaveLength(0);
  });

  it("hides them also where the browser stores nothing more", async () => {
    for (let size = 2 ** 24; size >= 1; size /= 2) {
      try {
        localStorage.setItem(`full ${size}`, "x".repeat(size));
      } catch {
        // A smaller piece may fit.
      }
    }
    await show(OverviewPage, { ...page, answers: answers({}) });
    fireEvent.click(await screen.findByRole("button", { name: "Hide" }));
    expect(screen.queryByRole("list", { name: "First steps" })).toBeNull();
    expect(localStorage.getItem(HIDDEN)).toBeNull();
  });

  it("hides them for good", async () => {
    await show(OverviewPage, { ...page, answers: answers({}) });
    fireEvent.click(await screen.findByRole("button", { name: "Hide" }));
    expect(screen.queryByRole("list", { name: "First steps" })).toBeNull();
    expect(localStorage.getItem(HIDDEN)).toBe(JSON.stringify([PROJECT]));
  });
});
