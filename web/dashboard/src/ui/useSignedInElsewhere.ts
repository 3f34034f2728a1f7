import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";

import type { Session } from "../api/session";

import { destination } from "./next";

/**
 * Go on to where somebody wanted to go, once they have signed in in another page of the browser: nobody does it twice.
 * Null is for a page that nobody may be taken away from.
 */
export function useSignedInElsewhere(session: Session | null, next: string | undefined): void {
  const navigate = useNavigate();
  const client = useQueryClient();
  useEffect(
    () =>
      session?.subscribe(() => {
        if (session.state !== "unknown") return;
        client.clear(); // whoever was signed in before may have been somebody else
        void navigate(destination(next));
      }),
    [session, next, navigate, client],
  );
}
