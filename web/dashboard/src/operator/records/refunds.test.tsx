import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { DESCRIBED } from "../../testing/described";
import { showOperator } from "../../testing/render";
import type { Schemas } from "../api";

import { Payment } from "./pages";

const PATH = "/api/admin/payments/{paymentId}";

it("what of a payment went back is told in the payment's own token", async () => {
  const { payment } = DESCRIBED.operator.example(PATH) as { readonly payment: Schemas["PaymentRow"] };
  const refund = { refundId: "ref_1", status: "completed", amount: "7.25", createdAt: "2026-01-01T12:00:00.000Z" };
  await showOperator(Payment, {
    path: "payments/$id",
    at: "payments/pay_1",
    answers: {
      "GET /api/admin/payments/pay_1": {
        success: true,
        payment: { ...payment, token: "USDX" },
        story: { deposits: [], refunds: [refund], events: [] },
      },
    },
  });
  const refunds = await screen.findByRole("table", { name: "Refunds" });
  expect(within(refunds).getByText("USDX")).toBeTruthy();
});
