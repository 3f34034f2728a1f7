import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { once } from "../../api/once";
import { Amount } from "../../ui/Amount";
import { AmountText } from "../../ui/AmountText";
import { useChainName } from "../../ui/ChainName";
import { Facts } from "../../ui/Page";
import { minus } from "../../ui/units";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";

type Station = Schemas["GasStationView"];

/** What is said where there is nothing that it could be taken from. */
const NOTHING = { stake: "stake.noBalance", unstake: "stake.noStake", withdraw: "stake.noneFree" } as const;

function isNothing(amount: string): boolean {
  return minus(amount, "0") === "0";
}

interface StakeButtonProps {
  readonly station: Station;
  /** What it has staked. */
  readonly stake: NonNullable<Station["stake"]>;
  readonly action: Schemas["StakeBody"]["action"];
}

/** Changes what a gas station has staked. */
export function StakeButton({ station, stake, action }: StakeButtonProps) {
  const { t } = useWords();
  const chainName = useChainName();
  const client = useQueryClient();
  const [amount, setAmount] = useState("");
  // What it is taken from.
  const [label, there] = {
    stake: [t("gas.balance"), station.balance ?? "0"] as const,
    unstake: [t("stake.staked"), stake.staked] as const,
    withdraw: [t("stake.withdrawable"), stake.withdrawable] as const,
  }[action];
  const isLent = action === "unstake" && !isNothing(there) && isNothing(minus(there, stake.lent));
  return (
    <ActButton
      isSmall
      whyNot={isLent ? t("stake.allLent") : isNothing(there) ? t(NOTHING[action]) : undefined}
      act={t(`stake.${action}`)}
      title={t(`stake.${action}Title`, { chain: chainName(station.chain) })}
      onOpen={() => {
        setAmount("");
      }}
      onConfirm={async () => {
        const { chain } = station;
        const body = { chain, action, ...(action === "withdraw" ? {} : { amount: amount.trim() }) };
        await once(`stake ${chain}`, (idempotencyKey) =>
          unwrap(api.POST("/api/admin/stakes", { body: { ...body, idempotencyKey } })),
        );
        await Promise.all([
          client.invalidateQueries({ queryKey: ["stakes"] }),
          client.invalidateQueries({ queryKey: ["gas_station"] }),
        ]);
      }}
    >
      <p>{t(`stake.${action}Words`)}</p>
      <Facts narrow facts={[[label, <Amount key="now" value={there} token={station.symbol} isWhole />]]} />
      {action !== "withdraw" && (
        <AmountText label={`${t("record.amount")}, ${station.symbol}`} required value={amount} onText={setAmount} />
      )}
    </ActButton>
  );
}
