import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { AmountText } from "../../ui/AmountText";
import { ErrorNote } from "../../ui/Feedback";
import { Facts } from "../../ui/Page";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords } from "../api";
import { useFeeCoin, usePermitted } from "../queries";

import type { Intent } from "./queries";

/** What may be done about it. What is not possible, the API says with its reason. */
export function IntentActs({ intent }: { readonly intent: Intent }) {
  return intent.state === "cancelling" ? <Settle intent={intent} /> : <OpenActs intent={intent} />;
}

/** Ends what may have been sent: somebody says which transaction used its nonce, and the gateway proves what that means. */
function Settle({ intent }: { readonly intent: Intent }) {
  const { t } = useWords();
  const client = useQueryClient();
  const [txHash, setTxHash] = useState("");
  const { settlement } = intent;
  if (!usePermitted("outbound.settle") || settlement === null) return null;
  return (
    <ActButton
      act={t("queue.settle")}
      title={t("queue.settleTitle")}
      onOpen={() => {
        setTxHash(settlement.signedTxHash ?? "");
      }}
      onConfirm={async () => {
        const params = { path: { intentId: intent.intentId } };
        const body = { txHash: txHash.trim() };
        await unwrap(api.POST("/api/admin/outbound/{intentId}/settle", { params, body }));
        await client.invalidateQueries({ queryKey: ["outbound"] });
      }}
    >
      <p>{t("queue.settleWords")}</p>
      <Facts
        facts={[
          [t("record.from"), <Address key="from" value={intent.fromAddress} whole />],
          [t("record.nonce"), settlement.nonce],
        ]}
      />
      <Text label={t("record.tx")} required autoComplete="off" maxLength={128} value={txHash} onText={setTxHash} />
    </ActButton>
  );
}

/** Looking at it now, raising its fee, and cancelling it. */
function OpenActs({ intent }: { readonly intent: Intent }) {
  const { t } = useWords();
  const client = useQueryClient();
  const mayChange = usePermitted("outbound.change");
  const [maxFee, setMaxFee] = useState("");
  const coin = useFeeCoin()(intent.chain);
  const newest = intent.transactions.reduce<Intent["transactions"][number] | undefined>(
    (last, one) => (last === undefined || one.createdAt > last.createdAt ? one : last),
    undefined,
  );
  const most = newest?.maxFee ?? null;
  const params = { path: { intentId: intent.intentId } };
  const changed = () => client.invalidateQueries({ queryKey: ["outbound"] });
  const retry = useAct(async () => {
    await unwrap(api.POST("/api/admin/outbound/{intentId}/retry", { params }));
    await changed();
  });
  const isOpen = intent.state === "waiting" || intent.state === "sending";
  if (!mayChange || !isOpen) return null;
  return (
    <>
      {retry.error !== null && <ErrorNote error={retry.error} />}
      <Button variant="default" loading={retry.isRunning} onClick={() => void retry.run()}>
        {t("queue.retry")}
      </Button>
      {intent.transactions.length > 0 && (
        <ActButton
          act={t("queue.raise")}
          title={t("queue.raiseTitle")}
          onOpen={() => {
            setMaxFee("");
          }}
          onConfirm={async () => {
            const body = maxFee.trim() === "" ? {} : { maxFee: maxFee.trim() };
            await unwrap(api.POST("/api/admin/outbound/{intentId}/raise-fee", { params, body }));
            await changed();
          }}
        >
          <p>{t("queue.raiseWords")}</p>
          <Facts
            narrow
            facts={[
              [t("queue.mostNow"), most === null ? null : <Amount key="most" value={most} token={coin} isWhole />],
            ]}
          />
          <AmountText
            label={t("queue.maxFee")}
            description={t("queue.maxFeeWords")}
            rightSection={coin}
            rightSectionWidth="4rem"
            value={maxFee}
            onText={setMaxFee}
          />
        </ActButton>
      )}
      {intent.merchantId !== null && (
        <ActButton
          isDangerous
          act={t("queue.cancel")}
          title={t("queue.cancelTitle")}
          dismiss={t("act.leave")}
          typed={intent.intentId.slice(-6)}
          onConfirm={async () => {
            await unwrap(api.POST("/api/admin/outbound/{intentId}/cancel", { params }));
            await changed();
          }}
        >
          {intent.amount !== null && (
            <p>
              <Amount value={intent.amount} token={intent.token} /> ·{" "}
              <bdi>
                <ChainName of={intent.chain} />
              </bdi>{" "}
              · <bdi>{intent.merchantName}</bdi>
            </p>
          )}
          <p>{t("queue.cancelWords")}</p>
        </ActButton>
      )}
    </>
  );
}
