/** The languages of the dashboard. English is part of the page, every other language is loaded when it is chosen. */
import i18next, { type TFunction } from "i18next";
import { initReactI18next } from "react-i18next";

import en from "./en/common.json";

export const LANGUAGES = { en: "English" } as const;
export type Language = keyof typeof LANGUAGES;

const RIGHT_TO_LEFT: ReadonlySet<string> = new Set(["ar", "fa", "he"]);
const KEY = "cambist-language";

export function isLanguage(text: string): text is Language {
  return text in LANGUAGES;
}

/** Return the language that was chosen last, else the first of the browser's that is there, else English. */
export function preferredLanguage(chosen: string | null, wanted: readonly string[]): Language {
  for (const one of [...(chosen === null ? [] : [chosen]), ...wanted]) {
    const base = one.split("-")[0] ?? "";
    if (isLanguage(base)) return base;
  }
  return "en";
}

/** Begin with the words of both apps, and with those of one of them. */
export async function startLanguages(own: Record<string, object> = {}): Promise<void> {
  const language = preferredLanguage(kept(), navigator.languages);
  await i18next.use(initReactI18next).init({
    lng: "en",
    fallbackLng: "en",
    defaultNS: "common",
    resources: { en: { common: en, ...own } },
    interpolation: { escapeValue: false }, // React escapes
    returnNull: false,
  });
  await changeLanguage(language);
}

export async function changeLanguage(language: Language): Promise<void> {
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
  document.documentElement.dir = RIGHT_TO_LEFT.has(language) ? "rtl" : "ltr";
  try {
    localStorage.setItem(KEY, language);
  } catch {
    // Where nothing may be kept, it is chosen again the next time.
  }
}

function kept(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export type Translate = TFunction;
