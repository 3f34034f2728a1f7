import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { useChainName } from "../../ui/ChainName";
import { showAmount } from "../../ui/format";
import { usePageLanguage } from "../../ui/language";
import { coinKey, coinsQuery, isUsable } from "../coins/queries";
import { useProject, useProjectId } from "../project";
import type { Schemas } from "../queries";

interface BalanceSelectProps {
  readonly balances: readonly Schemas["BalanceView"][];
  /** The key of its coin, `polygon/USDT`; null while none is chosen. */
  readonly value: string | null;
  readonly onChoice: (key: string | null) => void;
}

/** Chooses the balance that money is to leave, of a chain that it can leave; each says how much of it is available. */
export function BalanceSelect({ balances, value, onChoice }: BalanceSelectProps) {
  const { t } = useTranslation();
  const { language } = usePageLanguage();
  const chainName = useChainName();
  const mode = useProject()?.mode ?? "live";
  const { data: coins = [] } = useQuery(coinsQuery(useProjectId()));
  const unusable = new Set(coins.filter((one) => !isUsable(one, mode)).map(coinKey));
  const available = new Map(balances.map((one) => [coinKey(one), showAmount(one.available, language).text]));
  return (
    <Select
      label={t("payouts.from")}
      required
      maw="42.5rem"
      value={value}
      placeholder={t("payouts.choose")}
      allowDeselect={false}
      data={balances.map((one) => ({
        value: coinKey(one),
        label: `${one.token} · ${chainName(one.chain)}`,
        disabled: unusable.has(coinKey(one)),
      }))}
      renderOption={({ option }) => (
        <span>
          {option.label}{" "}
          <bdi dir="ltr" className="muted number">
            {available.get(option.value)}
          </bdi>
        </span>
      )}
      onChange={onChoice}
    />
  );
}
