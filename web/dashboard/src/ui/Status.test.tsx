import i18next from "i18next";
import { expect, it } from "vitest";

import type { components as Merchants } from "../api/generated/dashboard";
import type { components as Operators } from "../api/generated/operator";

import { toneOf } from "./Status";

type Schemas = Merchants["schemas"];
type Seen =
  | Schemas["PaymentView"]["status"]
  | Schemas["PayoutView"]["status"]
  | Schemas["DepositView"]["status"]
  | Schemas["DeliveryAnswer"]["status"]
  | Schemas["ExchangeView"]["status"]
  | NonNullable<Schemas["TrackerView"]["history"]>["state"]
  | Operators["schemas"]["OperatorDelivery"]["status"];

// The compiler holds this to be all of what the API's descriptions name, and no more.
const SEEN: Readonly<Record<Seen, true>> = {
  pending: true,
  detected: true,
  confirming: true,
  paid: true,
  underpaid: true,
  overpaid: true,
  expired: true,
  failed: true,
  refunded: true,
  requested: true,
  processing: true,
  broadcast: true,
  completed: true,
  cancelling: true,
  cancelled: true,
  confirmed: true,
  orphaned: true,
  paused: true,
  delivered: true,
  dropped: true,
  no_target: true,
  tested: true,
  succeeded: true,
  reading: true,
  done: true,
  failing: true,
};

it.each(Object.keys(SEEN))("%s has words of its own", (status) => {
  expect(i18next.exists(`status.${status}`)).toBe(true);
});

it("has a tone for what wants attention", () => {
  expect(["failing", "failed", "dropped", "orphaned"].map(toneOf)).toEqual(["bad", "bad", "bad", "bad"]);
});
