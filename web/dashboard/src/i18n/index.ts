/** The languages of the dashboard. English is part of the page, every other language is loaded when it is chosen. */
import i18next, { type FormatterModule, type TFunction } from "i18next";
import { initReactI18next } from "react-i18next";

import api from "./en/api.json";
import common from "./en/common.json";
import { directionOf, insideSentence, preferredLanguage, tagOf, type Language } from "./locale";

const KEY = "cambist-language";

/** The files of both apps: `said` holds sentences of the API's in other words, and so has no English. */
const SHARED = ["common", "api", "said"] as const;
type Texts = Readonly<Record<string, object>>;

const files = import.meta.glob<object>(["./*/*.json", "!./en/*.json"], { import: "default" });

/** Writes what is put into sentences, all of it: no text names a format of its own. */
const formatter: FormatterModule = {
  type: "formatter",
  init: () => undefined,
  add: () => undefined,
  addCached: () => undefined,
  format: (value: unknown, _format, language) => insideSentence(value, language ?? "en"),
};

let own: Texts = {};
let wanted: Language = "en";

/** A language that could not be loaded just now, as there is no connection. */
let missed: Language | null = null;
const listeners = new Set<() => void>();

export function missedLanguage(): Language | null {
  return missed;
}

export function subscribeMissed(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function sayMissed(language: Language | null): void {
  missed = language;
  for (const one of listeners) one();
}

/** Begin with the words of both apps, and with those of one of them. */
export async function startLanguages(texts: Texts = {}): Promise<void> {
  own = texts;
  await i18next
    .use(formatter)
    .use(initReactI18next)
    .init({
      lng: "en",
      fallbackLng: "en",
      defaultNS: "common",
      resources: { en: { common, api, ...own } },
      interpolation: {
        escapeValue: false, // React escapes
        alwaysFormat: true,
      },
      returnNull: false,
    });
  await changeLanguage(preferredLanguage(kept(), navigator.languages));
}

/** Change to a language, and keep it for the next time. Where it cannot be loaded, all stays as it is, and says so. */
export async function chooseLanguage(language: Language): Promise<void> {
  if (!(await changeLanguage(language))) return;
  try {
    localStorage.setItem(KEY, language);
  } catch {
    // Where nothing may be kept, it is chosen again the next time.
  }
}

/** Return whether the page is in the language now. */
async function changeLanguage(language: Language): Promise<boolean> {
  wanted = language;
  let isLoaded = true;
  try {
    await load(language);
  } catch {
    isLoaded = false;
  }
  if (wanted !== language) return false; // another one was asked for meanwhile
  sayMissed(isLoaded ? null : language);
  if (isLoaded) await i18next.changeLanguage(language);
  mark(i18next.language);
  return isLoaded;
}

async function load(language: Language): Promise<void> {
  if (language === "en") return;
  const names = [...SHARED, ...Object.keys(own)].filter((name) => !i18next.hasResourceBundle(language, name));
  const loaded = await Promise.all(names.map(async (name) => [name, await read(language, name)] as const));
  for (const [name, texts] of loaded) i18next.addResourceBundle(language, name, texts);
}

async function read(language: Language, name: string): Promise<object> {
  const file = files[`./${language}/${name}.json`];
  if (file === undefined) throw new Error(`There is no ${name} in ${language}.`);
  return await file();
}

/** What the browser draws by itself, such as the side of a scroll bar, follows the page's direction. */
function mark(language: string): void {
  document.documentElement.lang = tagOf(language);
  document.documentElement.dir = directionOf(language);
}

function kept(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export type Translate = TFunction;
