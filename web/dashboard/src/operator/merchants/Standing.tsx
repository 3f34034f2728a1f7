import { Chip } from "../../ui/Status";
import { useWords } from "../api";

import type { MerchantRow } from "./queries";

/** What a merchant may do just now: nothing, the sandbox alone, or live mode. */
export function Standing({ of }: { readonly of: MerchantRow }) {
  const { t } = useWords();
  if (of.suspendedAt !== null) return <Chip tone="bad">{t("merchants.suspended")}</Chip>;
  return of.live ? <Chip tone="good">{t("merchants.live")}</Chip> : <Chip tone="calm">{t("merchants.notLive")}</Chip>;
}
