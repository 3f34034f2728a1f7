import { Checkbox } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { ErrorNote, Loading } from "../../ui/Feedback";
import { coinsQuery, useUsableChains } from "../coins/queries";
import { useProjectId } from "../project";

/** Return the chains on which an end user may get an address, besides those of `without`. */
export function useChainsLeft(without: readonly string[]) {
  return useUsableChains().filter((one) => !without.includes(one.value));
}

interface ChainsInputProps {
  readonly chains: readonly string[];
  /** Chains that are there already. */
  readonly without?: readonly string[];
  readonly onChains: (chains: readonly string[]) => void;
}

/** Chooses chains on which an end user gets an address. */
export function ChainsInput({ chains, without = [], onChains }: ChainsInputProps) {
  const { t } = useTranslation();
  const offered = useChainsLeft(without);
  const coins = useQuery(coinsQuery(useProjectId()));
  return (
    <Checkbox.Group
      label={t("account.chains")}
      description={t("account.chainsWords")}
      required
      value={[...chains]}
      onChange={onChains}
    >
      {coins.isPending && <Loading lines={2} />}
      {coins.isError && <ErrorNote error={coins.error} onRetry={() => void coins.refetch()} />}
      <div className="choices">
        {offered.map((one) => (
          <Checkbox key={one.value} value={one.value} label={one.label} />
        ))}
      </div>
    </Checkbox.Group>
  );
}
