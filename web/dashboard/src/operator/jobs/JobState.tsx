import { Chip, type Tone } from "../../ui/Status";
import { useWords, type Schemas } from "../api";

type State = Schemas["JobView"]["state"];

const TONES = {
  queued: "wait",
  running: "work",
  succeeded: "good",
  failed: "bad",
  cancelled: "calm",
} as const satisfies Record<State, Tone>;

/** How far a job is. */
export function JobState({ state }: { readonly state: State }) {
  const { t } = useWords();
  return <Chip tone={TONES[state]}>{t(`jobState.${state}`)}</Chip>;
}
