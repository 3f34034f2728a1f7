import { describe } from "vitest";

import { PROJECT } from "../testing/render";
import { keepsToStates } from "../testing/states";

import { DeliveryPage } from "./developers/DeliveryPage";
import { PaymentPage } from "./payments/PaymentPage";
import { PayoutPage } from "./payouts/PayoutPage";

const BASE = `/api/dashboard/projects/${PROJECT}`;

describe("the page of one payment", () => {
  keepsToStates({
    page: PaymentPage,
    path: "payments/$paymentId",
    at: "payments/pay_1",
    asks: `GET ${BASE}/payments/pay_1`,
  });
});

describe("the page of one payout", () => {
  keepsToStates({
    page: PayoutPage,
    path: "payouts/$payoutId",
    at: "payouts/out_1",
    asks: `GET ${BASE}/wallet/payouts/out_1`,
  });
});

describe("the page of one delivery", () => {
  keepsToStates({
    page: DeliveryPage,
    path: "webhooks/$deliveryId",
    at: "webhooks/dlv_1",
    asks: `GET ${BASE}/deliveries/dlv_1`,
  });
});
