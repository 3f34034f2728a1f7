import styles from "./Status.module.css";
import { usePageLanguage } from "./language";

export type Tone = "wait" | "work" | "good" | "care" | "bad" | "calm";

/** What a state means for whoever looks: nothing yet, under way, well, wanting attention, wrong, over. */
const TONES = {
  pending: "wait",
  detected: "work",
  confirming: "work",
  paid: "good",
  overpaid: "care",
  underpaid: "care",
  expired: "calm",
  failed: "bad",
  refunded: "calm",
  requested: "wait",
  processing: "work",
  broadcast: "work",
  completed: "good",
  cancelling: "wait",
  cancelled: "calm",
  succeeded: "good",
  confirmed: "good",
  orphaned: "bad",
  delivered: "good",
  dropped: "bad",
  failing: "bad",
  paused: "wait",
  no_target: "calm",
  tested: "calm",
  active: "good",
  inactive: "calm",
  reading: "work",
  done: "good",
} as const satisfies Record<string, Tone>;

type Known = keyof typeof TONES;

function isKnown(status: string): status is Known {
  return status in TONES;
}

export function toneOf(status: string): Tone {
  return isKnown(status) ? TONES[status] : "calm";
}

/** A state, in words and in a colour. */
export function Status({ value }: { readonly value: string }) {
  const { t } = usePageLanguage();
  return <Chip tone={toneOf(value)}>{isKnown(value) ? t(`status.${value}`) : value}</Chip>;
}

export function Chip({ tone, children }: { readonly tone: Tone; readonly children: React.ReactNode }) {
  return (
    <span className={styles.chip} data-tone={tone}>
      {children}
    </span>
  );
}
