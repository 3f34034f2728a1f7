import { useState } from "react";

import { asApiError, type ApiError } from "../api/errors";

/**
 * What the API refused of a form that was sent from a dialog: its fields say so once the dialog is closed, until
 * something is typed, or it is about another coin.
 */
export function useRefused(coin: string | null) {
  const [refused, setRefused] = useState<{ readonly coin: string | null; readonly error: ApiError } | null>(null);
  return {
    /** What is wrong with one field. */
    of: (field: string) => (refused?.coin === coin ? refused.error.of(field) : undefined),
    forget: () => {
      setRefused(null);
    },
    /** Send the form. Rejects with what was refused; fields say so where it is still the same form by then. */
    noting: async <Answer>(send: () => Promise<Answer>, isStill = () => true): Promise<Answer> => {
      setRefused(null);
      try {
        return await send();
      } catch (error) {
        if (isStill()) setRefused({ coin, error: asApiError(error) });
        throw error;
      }
    },
  };
}
