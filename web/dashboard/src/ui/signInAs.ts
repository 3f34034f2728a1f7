/** Who is to sign in, as far as the page before knew: it goes along with the navigation, and never into the address. */
import { useLocation } from "@tanstack/react-router";

declare module "@tanstack/react-router" {
  interface HistoryState {
    readonly email?: string;
  }
}

/** Return the e-mail address that the page before knew; empty without one. */
export function useEmailBefore(): string {
  return useLocation({ select: ({ state }) => state.email ?? "" });
}
