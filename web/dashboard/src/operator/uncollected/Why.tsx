import { Said } from "../../ui/Said";
import { Chip, type Tone } from "../../ui/Status";
import { Moment } from "../../ui/When";
import { useWords } from "../api";

import type { Reason, Uncollected } from "./queries";

/** Those that time or a better price ends by themselves are calm; the others want somebody. */
const TONES = {
  below_minimum: "calm",
  fee_above_share: "wait",
  fee_above_value: "wait",
  fees_above_ceiling: "wait",
  collecting_off: "calm",
  price_missing: "care",
  failed_lately: "care",
  token_not_sendable: "care",
  refused: "bad",
} as const satisfies Record<Reason, Tone>;

export const REASONS = Object.keys(TONES) as readonly Reason[];

/** Why something stays on an address, in a few words. */
export function ReasonChip({ reason }: { readonly reason: Reason }) {
  const { t } = useWords();
  return <Chip tone={TONES[reason]}>{t(`uncollected.reasons.${reason}`)}</Chip>;
}

type Standing = Pick<Uncollected, "reason" | "until" | "sendingPaused" | "askedAt" | "wishWaitsFor" | "refusal">;

/** The same, with what is known besides: until when, whether somebody has asked for it, and what came of that. */
export function Why({ of }: { readonly of: Standing }) {
  const { t } = useWords();
  return (
    <>
      <span className="row">
        <ReasonChip reason={of.reason} />
        {of.sendingPaused && <Chip tone="wait">{t("chains.sendingPaused")}</Chip>}
        {of.askedAt !== null && <Chip tone="work">{t("uncollected.asked")}</Chip>}
      </span>
      {of.until !== null && (
        <div className="muted">
          {t("queue.until")} <Moment at={of.until} />
        </div>
      )}
      {of.wishWaitsFor !== null && (
        <div className="muted">
          <Said of="waits" code={of.wishWaitsFor.code} words={of.wishWaitsFor.text} />
        </div>
      )}
      {of.refusal !== null && (
        <div className="muted">{t("uncollected.refusedFor", { why: t(`uncollected.reasons.${of.refusal}`) })}</div>
      )}
    </>
  );
}
