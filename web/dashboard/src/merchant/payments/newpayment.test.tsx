import { fireEvent, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, PROJECT, show } from "../../testing/render";

import { NewPayment } from "./NewPayment";

const COINS = `GET /api/dashboard/projects/${PROJECT}/wallet/coins`;
const USDT = { chain: "polygon", token: "USDT", label: "Tether", availability: "live", enabled: true };
const CHAINS = { "GET /api/public/chains": { success: true, chains: [{ chain: "polygon", name: "Polygon" }] } };

describe("a new payment", () => {
  it("offers the coins that the project takes, and is made under one key", async () => {
    const bodies: Record<string, unknown>[] = [];
    await show(NewPayment, {
      path: "payments/new",
      answers: {
        ...CHAINS,
        [COINS]: {
          coins: [
            USDT,
            { ...USDT, token: "POL", label: "Polygon", enabled: false },
            { ...USDT, token: "EURX", label: "EURX" },
            { ...USDT, chain: "tron" },
            { ...USDT, chain: "base", availability: "unconfigured" },
            { ...USDT, chain: "ton", availability: "simulated" },
          ],
        },
        [`POST /api/dashboard/projects/${PROJECT}/payments`]: async (request) => {
          bodies.push((await request.json()) as Record<string, unknown>);
          return json({ payment: { paymentId: "pay_1" }, checkoutUrl: "https://pay.example/pay/1" }, 201);
        },
      },
    });
    fireEvent.click(await screen.findByRole("combobox", { name: /Chain/ }));
    await screen.findByRole("option", { name: "Polygon", hidden: true });
    const chains = screen.getAllByRole("option", { hidden: true }).map((option) => option.textContent);
    expect(chains).toEqual(expect.arrayContaining(["Polygon", "tron"]));
    for (const unusable of ["base", "ton"]) expect(chains).not.toContain(unusable);
    fireEvent.click(await screen.findByRole("option", { name: "Polygon", hidden: true }));
    fireEvent.click(screen.getByRole("combobox", { name: /Token/ }));
    expect(screen.queryByRole("option", { name: /POL/, hidden: true })).toBeNull();
    expect(screen.getByRole("option", { name: "EURX", hidden: true })).toBeTruthy();
    fireEvent.click(await screen.findByRole("option", { name: "USDT · Tether", hidden: true }));
    fireEvent.change(screen.getByLabelText(/^Amount/), { target: { value: " 49.90 " } });
    fireEvent.change(screen.getByLabelText(/^Order/), { target: { value: " A-17 " } });
    fireEvent.click(screen.getByRole("button", { name: "Create the payment" }));
    expect(await screen.findByText("elsewhere")).toBeTruthy();
    expect(bodies).toHaveLength(1);
    expect(bodies[0]).toMatchObject({ chain: "polygon", token: "USDT", amount: "49.90", fiatCurrency: "usd" });
    expect(bodies[0]?.orderId).toBe("A-17");
    expect(bodies[0]?.idempotencyKey).toBeTruthy();
  });

  it("is sent again under the same key where no answer came, and says what was made then, and that nothing was made now", async () => {
    const keys: unknown[] = [];
    await show(NewPayment, {
      path: "payments/new",
      answers: {
        ...CHAINS,
        [COINS]: { coins: [USDT] },
        [`POST /api/dashboard/projects/${PROJECT}/payments`]: async (request) => {
          keys.push(((await request.json()) as { idempotencyKey: unknown }).idempotencyKey);
          if (keys.length === 1) throw new TypeError("Failed to fetch");
          const payment = { paymentId: "pay_1", createdAt: "2026-01-31T12:00:00.000Z" };
          return keys.length === 2 ? json({ payment, idempotent: true }) : json({ payment }, 201);
        },
      },
    });
    fireEvent.click(await screen.findByRole("combobox", { name: /Chain/ }));
    fireEvent.click(await screen.findByRole("option", { name: "Polygon", hidden: true }));
    fireEvent.click(screen.getByRole("combobox", { name: /Token/ }));
    fireEvent.click(await screen.findByRole("option", { name: "USDT · Tether", hidden: true }));
    fireEvent.change(screen.getByLabelText(/^Amount/), { target: { value: "49.90" } });
    fireEvent.click(screen.getByRole("button", { name: "Create the payment" }));
    expect(await screen.findByText("NO_ANSWER_ONCE")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Create the payment" }));
    expect(
      await screen.findByText(/This payment was already made: .*Jan 31, 2026.* Nothing was made now/),
    ).toBeTruthy();
    expect(screen.getByRole("link", { name: "Open the payment" }).getAttribute("href")).toBe(
      `/${PROJECT}/payments/pay_1`,
    );
    expect(keys).toEqual([keys[0], keys[0]]);
    fireEvent.click(screen.getByRole("button", { name: "Create the payment" }));
    expect(await screen.findByText("elsewhere")).toBeTruthy();
    expect(keys[2]).not.toBe(keys[0]);
  });

  it("says what the customer would pay now", async () => {
    const asked: unknown[] = [];
    await show(NewPayment, {
      path: "payments/new",
      answers: {
        ...CHAINS,
        [COINS]: { coins: [USDT] },
        [`POST /api/dashboard/projects/${PROJECT}/payments/quote`]: async (request) => {
          asked.push(await request.json());
          return json({
            success: true,
            rate: "0.998",
            expectedAmount: "50.1",
            expectedAmountRaw: "50100000",
            decimals: 6,
            source: "median(coingecko,kraken)",
            validUntil: "2026-01-31T12:05:00.000Z",
          });
        },
      },
    });
    fireEvent.click(await screen.findByRole("combobox", { name: /Chain/ }));
    fireEvent.click(await screen.findByRole("option", { name: "Polygon", hidden: true }));
    fireEvent.click(screen.getByRole("combobox", { name: /Token/ }));
    fireEvent.click(await screen.findByRole("option", { name: "USDT · Tether", hidden: true }));
    fireEvent.change(screen.getByLabelText(/^Amount/), { target: { value: "50" } });
    const told = await screen.findByText(/The customer would pay now/);
    expect(told.textContent).toContain("50.1 USDT");
    expect(told.textContent).toContain("Median of CoinGecko and Kraken");
    expect(asked).toEqual([
      { chain: "polygon", token: "USDT", pricingMode: "fiat", amount: "50", fiatCurrency: "usd" },
    ]);
    // What was answered is of 50: beside another amount it is not shown, not even for a moment.
    fireEvent.change(screen.getByLabelText(/^Amount/), { target: { value: "500" } });
    expect(screen.queryByText(/The customer would pay now/)).toBeNull();
    await screen.findByText(/The customer would pay now/);
    expect(asked).toHaveLength(2);
  });

  it.each([
    ["live", "No chain is connected yet that this project could use"],
    ["sandbox", null],
  ] as const)("is of a simulated chain in a sandbox alone: %s", async (mode, none) => {
    const coins = [{ ...USDT, availability: "simulated" }];
    await show(NewPayment, { path: "payments/new", mode, answers: { ...CHAINS, [COINS]: { coins } } });
    if (none === null) expect(await screen.findByRole("combobox", { name: /Chain/ })).toBeTruthy();
    else expect(await screen.findByText(none)).toBeTruthy();
    expect(screen.queryByRole("combobox", { name: /Chain/ }) === null).toBe(none !== null);
  });

  it("says once that a token has no price, and marks its currency", async () => {
    const details = [{ field: "fiatCurrency", message: "is no currency that USDT is priced in here" }];
    const body = { success: false, error: "No.", code: "UNSUPPORTED_CURRENCY", details };
    const sent: string[] = [];
    const refuse = ({ url }: Request) => {
      sent.push(new URL(url).pathname.split("/").at(-1) ?? "");
      return json(body, 400);
    };
    const path = `POST /api/dashboard/projects/${PROJECT}/payments`;
    await show(NewPayment, {
      path: "payments/new",
      answers: { ...CHAINS, [COINS]: { coins: [USDT] }, [path]: refuse, [`${path}/quote`]: refuse },
    });
    fireEvent.click(await screen.findByRole("combobox", { name: /Chain/ }));
    fireEvent.click(await screen.findByRole("option", { name: "Polygon", hidden: true }));
    fireEvent.click(screen.getByRole("combobox", { name: /Token/ }));
    fireEvent.click(await screen.findByRole("option", { name: "USDT · Tether", hidden: true }));
    fireEvent.change(screen.getByLabelText(/^Amount/), { target: { value: "50" } });
    expect(await screen.findByText("UNSUPPORTED_CURRENCY")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Create the payment" }));
    await expect.poll(() => sent, { timeout: 20_000 }).toEqual(["quote", "payments"]);
    const currency = screen.getByRole("combobox", { name: "Currency" });
    await expect.poll(() => currency.getAttribute("aria-invalid"), { timeout: 20_000 }).toBe("true");
    expect(screen.getAllByText("UNSUPPORTED_CURRENCY")).toHaveLength(1);
  });

  it("offers nothing where the project takes no coin", async () => {
    await show(NewPayment, { path: "payments/new", answers: { ...CHAINS, [COINS]: { coins: [] } } });
    expect(await screen.findByText("This project takes no coin")).toBeTruthy();
    expect(screen.queryByRole("combobox")).toBeNull();
  });
});
