import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { coinKey, coinsQuery, useCoinChains } from "../coins/queries";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";

interface Target {
  readonly value: string;
  readonly label: string;
  readonly chain: string;
  readonly token: string;
}

interface Group {
  readonly group: string;
  readonly items: Target[];
}

/** Every coin that could come out, chain by chain, that of what is given first. */
export function useTargets(given: Schemas["BalanceView"] | undefined): readonly Group[] {
  const { t } = useTranslation();
  const { data: coins = [] } = useQuery(coinsQuery(useProjectId()));
  const chains = useCoinChains();
  if (given === undefined) return [];
  const here = (one: { readonly value: string }) => Number(one.value === given.chain);
  return [...chains]
    .sort((a, b) => here(b) - here(a))
    .map(({ value: chain, label: name }) => ({
      group: chain === given.chain ? t("exchange.swapOn", { chain: name }) : t("exchange.bridgeTo", { chain: name }),
      items: coins
        .filter((one) => one.chain === chain && one.enabled && coinKey(one) !== coinKey(given))
        .map(({ token }) => ({ value: coinKey({ chain, token }), label: `${token} · ${name}`, chain, token })),
    }))
    .filter(({ items }) => items.length > 0);
}
