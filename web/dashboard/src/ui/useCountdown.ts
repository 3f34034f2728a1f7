import { useCallback, useSyncExternalStore } from "react";

const TICK_MS = 250;

/** Return how many seconds are left until a moment of this machine's clock, and 0 behind it. */
export function useCountdown(until: number): number {
  const subscribe = useCallback((listener: () => void) => {
    const timer = setInterval(listener, TICK_MS);
    return () => {
      clearInterval(timer);
    };
  }, []);
  return useSyncExternalStore(subscribe, () => Math.max(0, Math.ceil((until - Date.now()) / 1000)));
}
