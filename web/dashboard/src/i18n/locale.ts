/** Which languages there are, what each is called in itself, and how it writes numbers and in which direction. */

export const LANGUAGES = {
  en: "English",
  de: "Deutsch",
  fr: "Français",
  es: "Español",
  pt: "Português (Brasil)",
  ru: "Русский",
  tr: "Türkçe",
  ar: "العربية",
  zh: "简体中文",
  ja: "日本語",
} as const;
export type Language = keyof typeof LANGUAGES;
export type Direction = "ltr" | "rtl";

const RIGHT_TO_LEFT: ReadonlySet<string> = new Set<Language>(["ar"]);

/** What pages are marked with, where a language's own name says too little: for fonts, and for who reads aloud. */
const TAGS: Readonly<Partial<Record<string, string>>> = { pt: "pt-BR", zh: "zh-Hans" };

// Arabic is written here with the digits 0 to 9, as banks and exchanges do: amounts stand beside addresses, hashes and
// symbols of coins, and are compared with what wallets and block explorers show.
const LOCALES: Readonly<Partial<Record<string, string>>> = { ...TAGS, ar: "ar-u-nu-latn" };

export function isLanguage(text: string): text is Language {
  return Object.hasOwn(LANGUAGES, text);
}

/** Return the language that was chosen last, else the first of the browser's that is there, else English. */
export function preferredLanguage(chosen: string | null, wanted: readonly string[]): Language {
  for (const one of [...(chosen === null ? [] : [chosen]), ...wanted]) {
    const base = one.split("-")[0] ?? "";
    if (isLanguage(base)) return base;
  }
  return "en";
}

export function directionOf(language: string): Direction {
  return RIGHT_TO_LEFT.has(language) ? "rtl" : "ltr";
}

/** Return what a page in a language is marked with, as `lang`. */
export function tagOf(language: string): string {
  return TAGS[language] ?? language;
}

/**
 * Return how `Intl` calls a language: by what numbers, dates and lists are written. A browser that names a region of the
 * language, such as `en-GB`, has dates as they are written there.
 */
export function localeOf(language: string, wanted: readonly string[] = navigator.languages): string {
  return LOCALES[language] ?? wanted.find((one) => one.startsWith(`${language}-`)) ?? language;
}

const FIRST_STRONG_ISOLATE = "\u2068";
const POP_DIRECTIONAL_ISOLATE = "\u2069";

/**
 * Write a value as it stands inside a sentence. Numbers are grouped as the language does; texts, such as names, keep
 * their own direction and leave that of the sentence alone.
 */
export function insideSentence(value: unknown, language: string): string {
  if (typeof value === "number") return new Intl.NumberFormat(localeOf(language)).format(value);
  const text = typeof value === "string" ? value : "";
  return directionOf(language) === "rtl" ? FIRST_STRONG_ISOLATE + text + POP_DIRECTIONAL_ISOLATE : text;
}
