import { useSyncExternalStore } from "react";

import { gatewayNow } from "../api/clock";

import { showAge, showTime } from "./format";
import { useHint } from "./useHint";
import { usePageLanguage } from "./language";

// One clock for all times on the page: it ticks while anybody looks at it, and what is new on the page finds it right to
// the second. Were it right to the millisecond, every row of a list would find it changed by the next one.
const TICK_MS = 10_000;
const EXACT_MS = 1_000;
let now = gatewayNow();
let ticking: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  ticking ??= setInterval(() => {
    now = gatewayNow();
    for (const one of listeners) one();
  }, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(ticking);
    ticking = undefined;
  };
}

function read(): number {
  const moment = gatewayNow();
  // A clock that is set back counts as well.
  if (Math.abs(moment - now) >= EXACT_MS) now = moment;
  return now;
}

/** Return what time it is at the gateway, as the page goes on. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, read);
}

/** A moment: how long ago, and on hover when exactly. */
export function When({ at }: { readonly at: string }) {
  const { language } = usePageLanguage();
  const shown = showAge(at, language, useNow());
  const { events, hint } = useHint(() => showTime(at, language));
  return (
    <>
      <time dateTime={at} className="number" tabIndex={0} {...events}>
        {shown}
      </time>
      {hint}
    </>
  );
}

/** A moment in full. */
export function Moment({ at }: { readonly at: string }) {
  const { language } = usePageLanguage();
  return (
    <time dateTime={at} className="number">
      {showTime(at, language)}
    </time>
  );
}
