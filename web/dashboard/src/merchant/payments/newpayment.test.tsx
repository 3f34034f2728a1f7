import { fireEvent, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, PROJECT, show } from "../../testing/render";

import { NewPayment } from "./NewPayment";

const COINS = `GET /api/dashboard/projects/${PROJECT}/wallet/coins`;
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
            { chain: "polygon", token: "USDT", label: "Tether", enabled: true },
            { chain: "polygon", token: "POL", label: "Polygon", enabled: false },
            { chain: "tron", token: "USDT", label: "Tether", enabled: true },
          ],
        },
        [`POST /api/dashboard/projects/${PROJECT}/payments`]: async (request) => {
          bodies.push((await request.json()) as Record<string, unknown>);
          return json({ payment: { paymentId: "pay_1" }, checkoutUrl: "https://pay.example/pay/1" }, 201);
        },
      },
    });
    fireEvent.click(await screen.findByRole("combobox", { name: /Chain/ }));
    expect(screen.getByRole("option", { name: "tron", hidden: true })).toBeTruthy();
    fireEvent.click(await screen.findByRole("option", { name: "Polygon", hidden: true }));
    fireEvent.click(screen.getByRole("combobox", { name: /Token/ }));
    expect(screen.queryByRole("option", { name: /POL/, hidden: true })).toBeNull();
    fireEvent.click(await screen.findByRole("option", { name: "USDT · Tether", hidden: true }));
    fireEvent.change(screen.getByLabelText(/^Amount/), { target: { value: " 49.90 " } });
    fireEvent.click(screen.getByRole("button", { name: "Create the payment" }));
    expect(await screen.findByText("elsewhere")).toBeTruthy();
    expect(bodies).toHaveLength(1);
    expect(bodies[0]).toMatchObject({ chain: "polygon", token: "USDT", amount: "49.90", fiatCurrency: "usd" });
    expect(bodies[0]?.idempotencyKey).toBeTruthy();
  });

  it("offers nothing where the project takes no coin", async () => {
    await show(NewPayment, { path: "payments/new", answers: { ...CHAINS, [COINS]: { coins: [] } } });
    expect(await screen.findByText("This project takes no coin")).toBeTruthy();
    expect(screen.queryByRole("combobox")).toBeNull();
  });
});
