import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Amount } from "../../ui/Amount";
import { AmountText } from "../../ui/AmountText";
import { Text } from "../../ui/Text";
import { NeedsSecondFactor } from "../NeedsSecondFactor";
import { useRecipient, type Refused } from "../payouts/useRecipient";

interface Refundable {
  readonly chain: string;
  readonly token: string;
  /** What is sent back where no amount is typed. */
  readonly all: string;
}

/** What a refund asks for: to an address that the customer named, never by itself to where the money came from. */
export function useRefundForm({ chain, token, all }: Refundable, refused: Refused) {
  const { t } = useTranslation();
  const [amount, setAmount] = useState("");
  const [reason, setReason] = useState("");
  const words = { label: t("refund.to"), description: t("refund.toWords"), "data-autofocus": true } as const;
  const to = useRecipient(chain, refused, words);
  const typing = (set: (text: string) => void) => (text: string) => {
    refused.forget();
    set(text);
  };
  return {
    body: {
      ...to.body,
      ...(amount.trim() === "" ? {} : { amount: amount.trim() }),
      ...(reason.trim() === "" ? {} : { reason: reason.trim() }),
    },
    fields: (
      <>
        <NeedsSecondFactor />
        {to.fields}
        <AmountText
          label={t("payments.amount")}
          description={
            <>
              {t("refund.all")} <Amount value={all} token={token} />
            </>
          }
          value={amount}
          error={refused.of("amount")}
          onText={typing(setAmount)}
        />
        <Text label={t("refund.reason")} value={reason} error={refused.of("reason")} onText={typing(setReason)} />
      </>
    ),
  };
}
