import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { gatewayNow } from "../../api/clock";
import { Text } from "../../ui/Text";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords } from "../api";
import { MerchantField, NOT_CHOSEN, type Concerned } from "../merchants/MerchantSelect";
import { usePermitted } from "../queries";

const HOUR_MS = 3_600_000;

/** Has deliveries that were given up be sent again, as a job. */
export function RedeliverButton() {
  const { t } = useWords();
  const navigate = useNavigate();
  const mayRedeliver = usePermitted("webhooks.redeliver");
  const [hours, setHours] = useState("24");
  const [merchantId, setMerchantId] = useState<Concerned>(NOT_CHOSEN);
  if (!mayRedeliver) return null;
  return (
    <ActButton
      act={t("webhooks.redeliver")}
      title={t("webhooks.redeliverTitle")}
      isBlocked={merchantId === null}
      onOpen={() => {
        setMerchantId(NOT_CHOSEN);
      }}
      onConfirm={async () => {
        const since = new Date(gatewayNow() - Number(hours) * HOUR_MS).toISOString();
        const of = merchantId === null || merchantId === NOT_CHOSEN ? {} : { merchantId };
        const { job } = await unwrap(api.POST("/api/admin/webhooks/redeliver", { body: { since, ...of } }));
        await navigate({ to: `/jobs/${job.jobId}` });
      }}
    >
      <p>{t("webhooks.redeliverWords")}</p>
      <Text
        label={t("webhooks.hours")}
        required
        inputMode="numeric"
        pattern="[1-9][0-9]{0,3}"
        value={hours}
        onText={setHours}
      />
      <MerchantField value={merchantId} onConcerned={setMerchantId} emptyWords={t("webhooks.merchantIdWords")} />
    </ActButton>
  );
}
