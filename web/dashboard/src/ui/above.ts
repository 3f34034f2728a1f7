/** Which dialog a key is for, where one stands above another: each of Mantine's that is open hears every key. */
import { useEffect, useSyncExternalStore } from "react";

let above = 0;
const listeners = new Set<() => void>();

function count(change: number): void {
  above += change;
  for (const one of listeners) one();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Have the dialogs below this one leave Escape to it, as long as it is open. */
export function useAbove(isOpen = true): void {
  useEffect(() => {
    if (!isOpen) return;
    count(1);
    return () => {
      // The key that closes it is heard below it as well, after that.
      setTimeout(count, 0, -1);
    };
  }, [isOpen]);
}

/** Say whether a dialog that uses `useAbove` is open. */
export function useIsBelow(): boolean {
  return useSyncExternalStore(subscribe, () => above > 0);
}
