import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { Confirm } from "../../ui/Confirm";
import { useProjectId } from "../project";
import type { PaymentDetail } from "../queries";

import { Minutes } from "./More";
import { Quote } from "./Quote";

interface RecalculateProps {
  readonly payment: PaymentDetail;
  readonly onClose: () => void;
}

/** A fresh rate for a payment that expired: its customer may pay what is missing, for as long as at first. */
export function Recalculate({ payment, onClose }: RecalculateProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const [minutes, setMinutes] = useState<number | null>(null);
  const { chain, token, amount, fiatCurrency, receivedAmount } = payment;

  async function recalculate(): Promise<void> {
    const params = { path: { projectId, paymentId: payment.paymentId } };
    const path = "/api/dashboard/projects/{projectId}/payments/{paymentId}/recalculate";
    await unwrap(api.POST(path, { params, body: minutes === null ? {} : { expiresInMinutes: minutes } }));
    void client.invalidateQueries({ queryKey: ["project", projectId] });
  }

  return (
    <Confirm title={t("recalculate.title")} act={t("recalculate.act")} onConfirm={recalculate} onClose={onClose}>
      <p>{t("recalculate.words")}</p>
      {/* Where a part has come, what is left of the price is known once the gateway has taken the new rate. */}
      {fiatCurrency !== undefined && !/[1-9]/.test(receivedAmount) && (
        <Quote ask={{ chain, token, pricingMode: "fiat", amount, fiatCurrency }} />
      )}
      <Minutes value={minutes} onMinutes={setMinutes} />
    </Confirm>
  );
}
