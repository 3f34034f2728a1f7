import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { useChainName } from "../../ui/ChainName";
import { Confirm } from "../../ui/Confirm";
import { minus } from "../../ui/units";
import { useRefused } from "../../ui/useRefused";
import { InMode } from "../InMode";
import { once } from "../../api/once";
import { useProjectId } from "../project";
import type { PaymentDetail } from "../queries";
import { useRefundForm } from "../refunds/useRefundForm";

interface RefundProps {
  readonly payment: PaymentDetail;
  readonly onClose: () => void;
}

/** Sending money of a payment back to a customer. */
export function Refund({ payment, onClose }: RefundProps) {
  const { t } = useTranslation();
  const chainName = useChainName();
  const projectId = useProjectId();
  const client = useQueryClient();
  const refused = useRefused(null);
  const left = minus(payment.receivedAmount, payment.refundedAmount);
  const form = useRefundForm({ chain: payment.chain, token: payment.token, all: left }, refused);

  async function refund(): Promise<void> {
    const { paymentId } = payment;
    const params = { path: { projectId, paymentId } };
    const path = "/api/dashboard/projects/{projectId}/payments/{paymentId}/refund";
    await once(`refund ${projectId} ${paymentId}`, (idempotencyKey) =>
      unwrap(api.POST(path, { params, body: { ...form.body, idempotencyKey } })),
    );
    void client.invalidateQueries({ queryKey: ["project", projectId] });
  }

  return (
    <Confirm
      title={t("refund.title")}
      act={t("refund.act")}
      isDangerous
      onConfirm={() => refused.noting(refund)}
      onClose={onClose}
    >
      <p>
        {t("refund.words", { chain: chainName(payment.chain), token: payment.token })} <InMode />
      </p>
      {form.fields}
    </Confirm>
  );
}
