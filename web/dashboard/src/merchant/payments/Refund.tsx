import { TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { Amount } from "../../ui/Amount";
import { AmountText } from "../../ui/AmountText";
import { useChainName } from "../../ui/ChainName";
import { Confirm } from "../../ui/Confirm";
import { minus } from "../../ui/units";
import { useRefused } from "../../ui/useRefused";
import { InMode } from "../InMode";
import { NeedsSecondFactor } from "../NeedsSecondFactor";
import { once } from "../../api/once";
import { useTag } from "../payouts/useTag";
import { useProjectId } from "../project";
import type { PaymentDetail } from "../queries";

interface RefundProps {
  readonly payment: PaymentDetail;
  readonly onClose: () => void;
}

/** Sending money back to a customer: to an address that the customer named, never by itself to where it came from. */
export function Refund({ payment, onClose }: RefundProps) {
  const { t } = useTranslation();
  const chainName = useChainName();
  const projectId = useProjectId();
  const client = useQueryClient();
  const [toAddress, setToAddress] = useState("");
  const [amount, setAmount] = useState("");
  const [reason, setReason] = useState("");
  const refused = useRefused(null);
  const [tag, tagField] = useTag(payment.chain, refused);

  const left = minus(payment.receivedAmount, payment.refundedAmount);

  async function refund(): Promise<void> {
    const body = {
      toAddress: toAddress.trim(),
      ...(tag === "" ? {} : { toTag: tag }),
      ...(amount.trim() === "" ? {} : { amount: amount.trim() }),
      ...(reason.trim() === "" ? {} : { reason: reason.trim() }),
    };
    const { paymentId } = payment;
    const params = { path: { projectId, paymentId } };
    const path = "/api/dashboard/projects/{projectId}/payments/{paymentId}/refund";
    await once(`refund ${projectId} ${paymentId}`, (idempotencyKey) =>
      unwrap(api.POST(path, { params, body: { ...body, idempotencyKey } })),
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
      <NeedsSecondFactor />
      <TextInput
        label={t("refund.to")}
        description={t("refund.toWords")}
        required
        data-autofocus
        autoComplete="off"
        spellCheck={false}
        value={toAddress}
        error={refused.of("toAddress")}
        onChange={(event) => {
          refused.forget();
          setToAddress(event.currentTarget.value);
        }}
      />
      {tagField}
      <AmountText
        label={t("payments.amount")}
        description={
          <>
            {t("refund.all")} <Amount value={left} token={payment.token} />
          </>
        }
        value={amount}
        error={refused.of("amount")}
        onText={(text) => {
          refused.forget();
          setAmount(text);
        }}
      />
      <TextInput
        label={t("refund.reason")}
        value={reason}
        error={refused.of("reason")}
        onChange={(event) => {
          refused.forget();
          setReason(event.currentTarget.value);
        }}
      />
    </Confirm>
  );
}
