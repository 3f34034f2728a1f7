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

/** How far something is that is to be sent. */
export function IntentState({ state }: { readonly state: Intent["state"] }) {
  const { t } = useWords();
  return <Chip tone={TONES[state]}>{t(`intentState.${state}`)}</Chip>;
}
