import i18next, { type TFunction } from "i18next";
import { createContext, useContext, useMemo, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

export interface PageLanguage {
  readonly t: TFunction;
  readonly language: string;
}

/** What says it where nothing provides it: pages do, and follow when the language changes. */
const Context = createContext<PageLanguage>({
  get t() {
    return i18next.t;
  },
  get language() {
    return i18next.language;
  },
});

/** Have what is inside speak the page's language. */
export function PageLanguageProvider({ children }: { readonly children: ReactNode }) {
  const { t, i18n } = useTranslation();
  const { language } = i18n;
  const words = useMemo(() => ({ t, language }), [t, language]);
  return <Context value={words}>{children}</Context>;
}

/**
 * Return the texts and the language, for what stands in lists: `useTranslation` listens for each of a hundred cells by
 * itself, which takes longer than to draw them.
 */
export function usePageLanguage(): PageLanguage {
  return useContext(Context);
}
