import { Outlet, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";

import type { Session } from "../api/session";

interface SignedInProps {
  readonly session: Session;
  /** Where the gateway serves the app. */
  readonly basePath: string;
}

/** What only people who are signed in see: when the session ends, wherever it was ended, it leads to signing in. */
export function SignedIn({ session, basePath }: SignedInProps) {
  const navigate = useNavigate();
  useEffect(
    () =>
      session.subscribe(() => {
        if (session.state !== "signed-out") return;
        const next = location.pathname.slice(basePath.length) + location.search;
        void navigate({ to: "/sign-in", search: { next } });
      }),
    [session, basePath, navigate],
  );
  return <Outlet />;
}
