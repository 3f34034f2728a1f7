import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { useTranslation } from "react-i18next";

import { asApiError } from "../../api/errors";
import { newKey } from "../../api/newKey";
import { ErrorNote } from "../../ui/Feedback";
import { useAct } from "../../ui/useAct";
import { api, unwrap } from "../api";
import { coinsQuery } from "../coins/queries";
import type { Schemas } from "../queries";

/** What is paid: it is on a simulated chain. */
const AMOUNT = "10";

/** Of these, nothing was made, and nothing will be. */
const REFUSED = [400, 404, 409, 422];

/** Makes a payment in the sandbox and pays it, as a shop and its customer would. */
export function PayOne({ projectId }: { readonly projectId: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  // What is asked for, with its idempotency key, until it is paid: another try makes no second payment.
  const asked = useRef<Schemas["CreatePayment"] | null>(null);
  const params = { path: { projectId } };

  async function choose(): Promise<Schemas["CreatePayment"]> {
    const coins = (await client.query({ ...coinsQuery(projectId), staleTime: 0 })).filter((one) => one.enabled);
    const coin = coins.find((one) => one.token.startsWith("USD")) ?? coins[0];
    if (coin === undefined) throw new Error(t("payments.noCoins"));
    const { chain, token } = coin;
    return { chain, token, pricingMode: "direct_crypto", amount: AMOUNT, idempotencyKey: newKey() };
  }

  async function make(body: Schemas["CreatePayment"]): Promise<Schemas["PaymentView"]> {
    try {
      return (await unwrap(api.POST("/api/dashboard/projects/{projectId}/payments", { params, body }))).payment;
    } catch (problem) {
      // The next try may be of another coin.
      if (REFUSED.includes(asApiError(problem).status)) asked.current = null;
      throw problem;
    }
  }

  const pay = useAct(async () => {
    asked.current ??= await choose();
    const { paymentId, requiredConfirmations: confirmations, status } = await make(asked.current);
    // Of a try whose answer was lost, the deposit may be there already.
    if (status === "pending") {
      const body = { paymentId, confirmations };
      await unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/deposit", { params, body }));
    }
    asked.current = null;
    await client.invalidateQueries({ queryKey: ["project", projectId] });
  });
  return (
    <>
      <Button size="compact-sm" loading={pay.isRunning} onClick={() => void pay.run()}>
        {t("firstSteps.pay")}
      </Button>
      {pay.error !== null && <ErrorNote error={pay.error} />}
    </>
  );
}
