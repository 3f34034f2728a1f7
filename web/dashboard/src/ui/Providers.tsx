import "./styles";

import { DirectionProvider, MantineProvider, localStorageColorSchemeManager } from "@mantine/core";
import { QueryCache, QueryClient, QueryClientProvider, onlineManager } from "@tanstack/react-query";
import { useEffect, type ReactNode } from "react";

import { asApiError } from "../api/errors";

import { keepFocus } from "./focus";
import { LanguageNote } from "./LanguageNote";
import { StepUp } from "./StepUp";
import { theme } from "./theme";
import { PageLanguageProvider } from "./language";

const STALE_MS = 5_000;
const RETRIES = 2;

export function makeQueryClient(): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache(),
    defaultOptions: {
      queries: {
        staleTime: STALE_MS,
        // Without a connection a query fails at once, and the page says so, where it would wait without a word. It is
        // asked for again by itself once the browser is online.
        networkMode: "always",
        refetchOnReconnect: true,
        // What the API refused is refused again; what did not come may come.
        retry: (failures, error) => {
          const { status, code } = asApiError(error);
          // Whoever has waited for an answer in vain is told so before they wait again; and what may have been done is
          // not done again by itself.
          if (code === "TIMEOUT" || code === "NO_ANSWER") return false;
          return failures < RETRIES && onlineManager.isOnline() && (status === 0 || status >= 500);
        },
      },
      mutations: { retry: false },
    },
  });
}

const colorSchemes = localStorageColorSchemeManager({ key: "cambist-color-scheme" });

interface ProvidersProps {
  readonly client: QueryClient;
  readonly children: ReactNode;
}

/** What every page of both apps stands in. */
export function Providers({ client, children }: ProvidersProps) {
  useEffect(keepFocus, []);
  return (
    // The variables and classes are static CSS: the policy blocks style tags.
    <MantineProvider
      theme={theme}
      colorSchemeManager={colorSchemes}
      defaultColorScheme="auto"
      withCssVariables={false}
      withGlobalClasses={false}
    >
      {/* It follows the page, which `changeLanguage` marks. */}
      <DirectionProvider>
        <QueryClientProvider client={client}>
          <PageLanguageProvider>
            {children}
            <StepUp />
            <LanguageNote />
          </PageLanguageProvider>
        </QueryClientProvider>
      </DirectionProvider>
    </MantineProvider>
  );
}
