import { skipToken, useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { useChainName } from "../../ui/ChainName";
import { coinKey, coinsQuery } from "../coins/queries";
import { useProjectId } from "../project";

import { pairsQuery } from "./queries";

interface Target {
  readonly value: string;
  readonly label: string;
  readonly chain: string;
  readonly token: string;
}

interface Group {
  readonly group: string;
  readonly items: readonly Target[];
}

interface Targets {
  readonly groups: readonly Group[];
  /** Whether the gateway has said what can be had for it. */
  readonly isKnown: boolean;
  /** Why nothing can be had for it; null where something can, and while nobody knows. */
  readonly why: "exchange.noPairs" | "exchange.allDisabled" | null;
  /** Why nobody knows. */
  readonly error: Error | null;
}

/** What can come out of what is given, and is enabled, chain by chain, that of what is given first. */
export function useTargets(given: { readonly chain: string; readonly token: string } | undefined): Targets {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const chainName = useChainName();
  const { data: coins = [] } = useQuery(coinsQuery(projectId));
  const pairs = pairsQuery(projectId, given ?? { chain: "", token: "" });
  const { data, error } = useQuery(given === undefined ? { ...pairs, queryFn: skipToken } : pairs);
  if (given === undefined) return { groups: [], isKnown: false, why: null, error: null };
  const disabled = new Set(coins.filter((one) => !one.enabled).map(coinKey));
  const targets = (data ?? [])
    .map(({ destChain: chain, destToken: token }) => ({ chain, token, value: coinKey({ chain, token }) }))
    .filter(({ value }) => !disabled.has(value));
  const here = (chain: string) => Number(chain === given.chain);
  const groups = [...new Set(targets.map(({ chain }) => chain))]
    .sort((one, other) => here(other) - here(one))
    .map((chain) => ({
      group: t(chain === given.chain ? "exchange.swapOn" : "exchange.bridgeTo", { chain: chainName(chain) }),
      items: targets
        .filter((one) => one.chain === chain)
        .map((one) => ({ ...one, label: `${one.token} · ${chainName(chain)}` })),
    }));
  const isKnown = data !== undefined;
  const why = data?.length === 0 ? "exchange.noPairs" : "exchange.allDisabled";
  return { groups, isKnown, why: isKnown && targets.length === 0 ? why : null, error };
}
