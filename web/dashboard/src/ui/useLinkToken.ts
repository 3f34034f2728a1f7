import { useLocation, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";

/** Return the token that a one-time link has behind its #; empty without one. It does not stay in the history. */
export function useLinkToken(): string {
  const navigate = useNavigate();
  const hash = useLocation({ select: (location) => location.hash });
  const [token, setToken] = useState(hash);
  if (hash !== "" && hash !== token) setToken(hash);
  useEffect(() => {
    if (hash !== "") void navigate({ to: ".", hash: "", replace: true });
  }, [hash, navigate]);
  return token;
}
