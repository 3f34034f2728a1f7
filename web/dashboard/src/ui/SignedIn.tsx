import { useQueryClient } from "@tanstack/react-query";
import { Outlet, useNavigate } from "@tanstack/react-router";
import { useEffect, useState, type ComponentType } from "react";

import type { Session } from "../api/session";

import { isTyped, watchTyping } from "./typed";

interface SignedInProps {
  readonly session: Session;
  /** Where the gateway serves the app. */
  readonly basePath: string;
  /** Lies over the page, and asks to sign in again. */
  readonly SignInAgain: ComponentType;
}

/**
 * What only people who are signed in see. When the session ends, wherever it was ended, it leads to signing in. Where the
 * gateway has ended it while something is typed on the page, that stays, and whoever typed it signs in over it.
 */
export function SignedIn({ session, basePath, SignInAgain }: SignedInProps) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const [isKept, setKept] = useState(false);
  useEffect(watchTyping, []);
  useEffect(() => {
    let keptFor: { readonly whose: string | null } | null = null;
    return session.subscribe(() => {
      if (session.state === "signed-out") {
        if (session.isRefused && (keptFor !== null || isTyped())) {
          keptFor ??= { whose: session.whose };
          setKept(true);
          return;
        }
        const next = location.pathname.slice(basePath.length) + location.search;
        void navigate({ to: "/sign-in", search: { next } });
      } else if (keptFor === null) return;
      else if (session.state === "unknown") {
        session.token().catch(() => undefined); // signed in in another page: what is asked for next tries again
      } else if (session.whose !== keptFor.whose) {
        // What is on the page is somebody else's.
        session.reload();
      } else {
        keptFor = null;
        setKept(false);
        void client.invalidateQueries();
      }
    });
  }, [session, basePath, navigate, client]);
  return (
    <>
      <Outlet />
      {isKept && <SignInAgain />}
    </>
  );
}
