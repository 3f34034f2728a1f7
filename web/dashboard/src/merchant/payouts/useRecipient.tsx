import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { Text } from "../../ui/Text";
import { useChains } from "../project";

interface Refused {
  readonly of: (field: string) => string | undefined;
  readonly forget: () => void;
}

/** Say whether a chain has tags. Also while nobody knows: without its tag, nobody there is credited. */
export function useHasTags(chain: string | undefined): boolean {
  const { data: chains = [] } = useChains();
  return chain !== undefined && chains.find((one) => one.chain === chain)?.hasTags !== false;
}

/** Return for whom at a shared address something is, "" for nobody, and the field for it, where the chain has tags. */
export function useTag(chain: string | undefined, refused: Refused): readonly [tag: string, field: ReactNode] {
  const { t } = useTranslation();
  const [typed, setTyped] = useState("");
  const hasTags = useHasTags(chain);
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
