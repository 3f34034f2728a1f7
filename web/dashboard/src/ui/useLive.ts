import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { follow, type Change } from "../api/live";
import type { Session } from "../api/session";

/** Changes that come within this time are read again together: on a busy gateway there are many. */
const TOGETHER_MS = 1_000;

declare module "@tanstack/react-query" {
  interface Register {
    queryMeta: {
      /** How long after an answer a query is not asked again because of what changes: what is much to ask for rests. */
      readonly restMs?: number;
    };
  }
}

/**
 * Read again what changes, as long as the page is there. `touches` says whether a query shows something of a change.
 * Returns whether changes are told just now. The functions given have to stay the same from one rendering to the next.
 */
export function useLive(
  path: string,
  session: Session,
  touches: (key: readonly unknown[], change: Change) => boolean,
): boolean {
  const client = useQueryClient();
  const [isTold, setTold] = useState(true);
  useEffect(() => {
    let waiting: Change[] = [];
    let together: ReturnType<typeof setTimeout> | undefined;
    let rested: ReturnType<typeof setTimeout> | undefined;
    // What changed while it rests: it is read once it has, however often it changes meanwhile.
    const resting = new Set<string>();
    const read = (changes: readonly Change[]) => {
      let soonestMs = Infinity;
      const due = new Set<string>();
      for (const { queryKey, queryHash, meta, state } of client.getQueryCache().getAll()) {
        if (!resting.has(queryHash) && !changes.some((one) => touches(queryKey, one))) continue;
        const restMs = meta?.restMs ?? 0;
        const answeredAt = Math.max(state.dataUpdatedAt, state.errorUpdatedAt);
        // To ask again while it is asked would begin it anew, again and again; where it failed it rests as well.
        const since = restMs === 0 ? 0 : state.fetchStatus === "fetching" ? Date.now() : answeredAt;
        const leftMs = since + restMs - Date.now();
        if (leftMs > 0) {
          resting.add(queryHash);
          soonestMs = Math.min(soonestMs, leftMs);
        } else {
          resting.delete(queryHash);
          due.add(queryHash);
        }
      }
      void client.invalidateQueries({ predicate: ({ queryHash }) => due.has(queryHash) });
      if (soonestMs === Infinity) return;
      clearTimeout(rested);
      rested = setTimeout(() => {
        read([]);
      }, soonestMs);
    };
    const stop = follow(path, session, {
      onChanges: (changes) => {
        waiting.push(...changes);
        together ??= setTimeout(() => {
          const changed = waiting;
          waiting = [];
          together = undefined;
          read(changed);
        }, TOGETHER_MS);
      },
      onMissed: () => {
        void client.invalidateQueries();
      },
      onState: setTold,
    });
    return () => {
      stop();
      clearTimeout(together);
      clearTimeout(rested);
    };
  }, [client, path, session, touches]);
  return isTold;
}
