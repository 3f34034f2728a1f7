import { Chip, type Tone } from "../../ui/Status";
import { useWords, type Schemas } from "../api";

const TONES = {
  working: "good",
  delayed: "care",
  down: "bad",
  paused: "care",
} as const satisfies Record<string, Tone>;

/** How a chain stands, and what of it is paused. */
export function ChainStatus({ chain }: { readonly chain: Schemas["AdminChainView"] }) {
  const { t } = useWords();
  const { status, availability, pauses } = chain;
  const isSendingPaused = pauses.some((one) => one.what === "sending");
  return (
    <span className="row">
      {status === null ? (
        <Chip tone="calm">{t(`availability.${availability}`)}</Chip>
      ) : (
        <Chip tone={TONES[status]}>{t(`chainStatus.${status}`)}</Chip>
      )}
      {isSendingPaused && <Chip tone="care">{t("chains.sendingPaused")}</Chip>}
    </span>
  );
}
