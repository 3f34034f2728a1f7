import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { follow, type Change } from "../api/live";
import type { Session } from "../api/session";

/** Changes that come within this time are read again together: on a busy gateway there are many. */
const TOGETHER_MS = 1_000;

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
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = () => {
      const changes = waiting;
      waiting = [];
      timer = undefined;
      void client.invalidateQueries({ predicate: ({ queryKey }) => changes.some((one) => touches(queryKey, one)) });
    };
    const stop = follow(path, session, {
      onChanges: (changes) => {
        waiting.push(...changes);
        timer ??= setTimeout(read, TOGETHER_MS);
      },
      onMissed: () => {
        void client.invalidateQueries();
      },
      onState: setTold,
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [client, path, session, touches]);
  return isTold;
}
