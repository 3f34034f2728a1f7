import { Button, NumberInput, Select } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { AmountText } from "../../ui/AmountText";
import { useChainName } from "../../ui/ChainName";
import { api, unwrap } from "../api";
import type { Coin } from "../coins/queries";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";

import { BLOCKS_MAX } from "./ChainActs";
import { useSandbox } from "./useSandbox";

type Body = Schemas["Deposit"];

interface SendToProps {
  /** Whose address it goes to. */
  readonly to: Pick<Body, "paymentId" | "accountId" | "address">;
  /** What can be sent there. */
  readonly coins: readonly Coin[];
  readonly act: string;
}

/** Sends some amount of a coin, as whoever pays would. */
export function SendTo({ to, coins, act }: SendToProps) {
  const { t } = useTranslation();
  const params = { path: { projectId: useProjectId() } };
  const chainName = useChainName();
  const [chosen, setChosen] = useState<string | null>(null);
  const [amount, setAmount] = useState("");
  const [confirmations, setConfirmations] = useState(0);
  const names = coins.map((one) => `${one.token} · ${chainName(one.chain)}`);
  const coin = coins[names.indexOf(chosen ?? names[0] ?? "")];
  const send = useSandbox(() => {
    const body = {
      ...to,
      chain: coin?.chain ?? null,
      token: coin?.token ?? null,
      amount: amount.trim(),
      confirmations,
    };
    return unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/deposit", { params, body }));
  });
  if (coin === undefined) return null;
  return (
    <form className="stack" onSubmit={send.submit}>
      <div className="row">
        <Select
          label={t("payments.token")}
          allowDeselect={false}
          searchable
          data={names}
          value={chosen ?? names[0] ?? null}
          error={send.error?.of("token") ?? send.error?.of("chain")}
          onChange={setChosen}
        />
        <AmountText
          label={t("payments.amount")}
          required
          value={amount}
          error={send.error?.of("amount")}
          onText={setAmount}
        />
        <NumberInput
          label={t("sandbox.confirmations")}
          min={0}
          max={BLOCKS_MAX}
          allowDecimal={false}
          value={confirmations}
          onChange={(value) => {
            setConfirmations(Number(value));
          }}
        />
        <Button type="submit" variant="default" loading={send.isRunning} className="besideInput">
          {act}
        </Button>
      </div>
      {send.outcome}
    </form>
  );
}
