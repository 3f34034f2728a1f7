import { Outlet, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";

import { merchantSession } from "../api/client";

import { BASE_PATH } from "./auth/next";

/** What only people who are signed in see: when the session ends, wherever it was ended, it leads to signing in. */
export function SignedIn() {
  const navigate = useNavigate();
  useEffect(
    () =>
      merchantSession.subscribe(() => {
        if (merchantSession.state !== "signed-out") return;
        const next = location.pathname.slice(BASE_PATH.length) + location.search;
        void navigate({ to: "/sign-in", search: { next } });
      }),
    [navigate],
  );
  return <Outlet />;
}
