import { useState, type SyntheticEvent } from "react";

import { asApiError, type ApiError } from "../api/errors";

export interface Act {
  /** Do it, once at a time; what is thrown is shown and not thrown on. Resolves to whether it was done. */
  readonly run: () => Promise<boolean>;
  /** The same, for a form. */
  readonly submit: (event: SyntheticEvent) => void;
  readonly isRunning: boolean;
  /** Whether the last time was a success. */
  readonly isDone: boolean;
  readonly error: ApiError | null;
}

/** Something that a button or a form does over the API. */
export function useAct(act: () => Promise<unknown>): Act {
  const [isRunning, setRunning] = useState(false);
  const [isDone, setDone] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);

  async function run(): Promise<boolean> {
    if (isRunning) return false;
    setRunning(true);
    setDone(false);
    setError(null);
    try {
      await act();
      setDone(true);
      return true;
    } catch (refused) {
      setError(asApiError(refused));
      return false;
    } finally {
      setRunning(false);
    }
  }

  return {
    run,
    submit: (event) => {
      event.preventDefault();
      void run();
    },
    isRunning,
    isDone,
    error,
  };
}
