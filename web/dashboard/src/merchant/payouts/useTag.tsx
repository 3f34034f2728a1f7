import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { Text } from "../../ui/Text";
import { useChains } from "../project";

interface Refused {
  readonly of: (field: string) => string | undefined;
  readonly forget: () => void;
}

/** Return for whom at a shared address something is, "" for nobody, and the field for it, where the chain has tags. */
export function useTag(chain: string | undefined, refused: Refused): readonly [tag: string, field: ReactNode] {
  const { t } = useTranslation();
  const [typed, setTyped] = useState("");
  const { data: chains = [] } = useChains();
  // Asked for also while nobody knows: without its tag, nobody there is credited.
  const hasTags = chain !== undefined && chains.find((one) => one.chain === chain)?.hasTags !== false;
  if (!hasTags) return ["", null];
  const field = (
    <Text
      label={t("payout.tag")}
      description={t("withdrawal.tagWords")}
      autoComplete="off"
      value={typed}
      error={refused.of("toTag")}
      onText={(text) => {
        refused.forget();
        setTyped(text);
      }}
    />
  );
  return [typed.trim(), field];
}
