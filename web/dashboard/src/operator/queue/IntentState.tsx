import { Chip, type Tone } from "../../ui/Status";
import { useWords } from "../api";

import type { Intent } from "./queries";

const TONES = {
  waiting: "wait",
  cancelling: "care",
  sending: "work",
  done: "good",
  failed: "bad",
} as const satisfies Record<Intent["state"], Tone>;

interface IntentStateProps {
  readonly state: Intent["state"];
  /** Whether it was to be cancelled: that it then ended without being sent is what was wanted. */
  readonly isCancelled?: boolean;
}

/** How far something is that is to be sent. */
export function IntentState({ state, isCancelled = false }: IntentStateProps) {
  const { t } = useWords();
  if (isCancelled && state === "failed") return <Chip tone="calm">{t("common:status.cancelled")}</Chip>;
  return <Chip tone={TONES[state]}>{t(`intentState.${state}`)}</Chip>;
}
