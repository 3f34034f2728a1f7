import { useState } from "react";

import { asApiError, type ApiError } from "../api/errors";

/**
 * What the API refused of a form that was sent from a dialog: its fields say so once the dialog is closed, until
 * something is typed.
 */
export function useRefused() {
  const [refused, setRefused] = useState<ApiError | null>(null);
  return {
    /** What is wrong with one field. */
    of: (field: string) => refused?.of(field),
    forget: () => {
      setRefused(null);
    },
    /** Send the form. Rejects with what was refused. */
    noting: async <Answer>(send: () => Promise<Answer>): Promise<Answer> => {
      setRefused(null);
      try {
        return await send();
      } catch (error) {
        setRefused(asApiError(error));
        throw error;
      }
    },
  };
}
