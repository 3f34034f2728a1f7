import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useChainName } from "../../ui/ChainName";
import { Text } from "../../ui/Text";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";

interface StakeButtonProps {
  readonly station: Schemas["GasStationView"];
  readonly action: Schemas["StakeBody"]["action"];
}

/** Changes what a gas station has staked. */
export function StakeButton({ station, action }: StakeButtonProps) {
  const { t } = useWords();
  const chainName = useChainName();
  const client = useQueryClient();
  const [amount, setAmount] = useState("");
  return (
    <ActButton
      isSmall
      act={t(`stake.${action}`)}
      title={t(`stake.${action}Title`, { chain: chainName(station.chain) })}
      onConfirm={async () => {
        const body = { chain: station.chain, action, ...(action === "withdraw" ? {} : { amount: amount.trim() }) };
        await unwrap(api.POST("/api/admin/stakes", { body }));
        setAmount("");
        await Promise.all([
          client.invalidateQueries({ queryKey: ["stakes"] }),
          client.invalidateQueries({ queryKey: ["gas_station"] }),
        ]);
      }}
    >
      <p>{t(`stake.${action}Words`)}</p>
      {action !== "withdraw" && (
        <Text
          label={`${t("record.amount")}, ${station.symbol}`}
          required
          inputMode="decimal"
          autoComplete="off"
          value={amount}
          onText={setAmount}
        />
      )}
    </ActButton>
  );
}
