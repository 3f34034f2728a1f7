// What a merchant's program does with the client that is made of its description. Never run, only compiled: each line
// would not compile if the description said less.
import createClient from "openapi-fetch";
import type { components, paths, webhooks } from "described/merchant";

const client = createClient<paths, "application/json">({ baseUrl: "https://pay.example.com", headers: { "X-Api-Key": "ck_test" } });

type Is<Found, Wanted> = [Found] extends [Wanted] ? ([Wanted] extends [Found] ? true : false) : false;
const is = <Claim extends true>(): Claim => true as Claim;

type Status = components["schemas"]["PaymentView"]["status"];
is<
  Is<
    Status,
    "pending" | "detected" | "confirming" | "paid" | "underpaid" | "overpaid" | "expired" | "failed" | "refunded"
  >
>();
is<Is<components["schemas"]["PaymentList"]["payments"][number]["status"], Status>>();
is<Is<components["schemas"]["PaymentView"]["mode"], "live" | "sandbox">>();
is<Is<components["schemas"]["PaymentView"]["txHash"], string | null>>();
is<Is<components["schemas"]["PaymentView"]["exchangeRate"], string | undefined>>();
is<Is<components["schemas"]["PaymentMade"]["success"], true>>();

export async function pay(): Promise<string> {
  const { data, error } = await client.POST("/api/payment", {
    body: { chain: "ethereum", token: "USDT", pricingMode: "direct_crypto", amount: "25" },
  });
  if (error !== undefined) {
    is<Is<(typeof error)["success"], false>>();
    switch (error.code) {
      case "RATE_UNAVAILABLE":
        return "later";
      // @ts-expect-error a code that no payment is answered with
      case "PLAN_NAME_TAKEN":
        return "never";
      default:
        return error.details?.[0]?.message ?? error.error;
    }
  }
  is<Is<(typeof data)["success"], true>>();
  const soon: Date = new Date(data.payment.expiresAt);
  return `${data.checkoutUrl} until ${soon.toISOString()}`;
}

// @ts-expect-error an amount is a text
void client.POST("/api/payment", { body: { chain: "x", token: "y", pricingMode: "direct_crypto", amount: 25 } });
// @ts-expect-error such a status has no payment
void client.GET("/api/payment", { params: { query: { status: "lost" } } });
void client.GET("/api/payment", { params: { query: { status: "paid", limit: 100 } } });

const files = createClient<paths, "text/csv">({ baseUrl: "https://pay.example.com" });

export async function statement(): Promise<string> {
  const { data } = await files.GET("/api/merchant/wallet/transactions.csv", { parseAs: "text" });
  const payments = await files.GET("/api/payment", { params: { query: { format: "csv" } }, parseAs: "text" });
  const both: (string | undefined)[] = [data, payments.data];
  return both.join("");
}

type Event = {
  [Name in keyof webhooks]: webhooks[Name]["post"]["requestBody"]["content"]["application/json"];
}[keyof webhooks];

export function told(event: Event): string {
  switch (event.event) {
    case "payment.paid":
      is<Is<typeof event.data.status, Status>>();
      return event.data.receivedAmount;
    case "payment.refunded":
      return event.data.refundId;
    case "payout.failed":
      return event.data.error ?? "";
    case "transaction.detected":
      return event.data.direction === "in" ? "came" : "went";
    // @ts-expect-error there is no such event
    case "payment.lost":
      return "";
    default:
      return event.webhookId;
  }
}
