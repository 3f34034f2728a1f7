/**
 * The languages of the dashboard. All texts are loaded: at first those that are needed before anybody is signed in, around
 * every page and on the overviews (`first.json` names them), then those of all other pages, with the first of these.
 */
import i18next, { type FormatterModule, type TFunction } from "i18next";
import { initReactI18next } from "react-i18next";

import { errorOf } from "../api/errors";

import { directionOf, insideSentence, preferredLanguage, tagOf, type Language } from "./locale";

const KEY = "cambist-language";

/** The files: `said` holds sentences of the API's in other words, and so has no English. */
export type TextFile = "common" | "operator" | "api" | "said";
type Part = "first" | "rest";

/** Where the parts of the files are. */
const PARTS: Readonly<Record<Part, Readonly<Record<string, string>>>> = {
  first: import.meta.glob<string>("./*/*.json", { eager: true, import: "default", query: "?first" }),
  rest: import.meta.glob<string>("./*/*.json", { eager: true, import: "default", query: "?rest" }),
};

/** Writes what is put into sentences, all of it: no text names a format of its own. */
const formatter: FormatterModule = {
  type: "formatter",
  init: () => undefined,
  add: () => undefined,
  addCached: () => undefined,
  format: (value: unknown, _format, language) => insideSentence(value, language ?? "en"),
};

/** The files of both apps; an app adds its own. */
const files = new Set<TextFile>(["common", "api", "said"]);
/** Which parts of them the pages so far have asked for. */
const needed = new Set<Part>(["first"]);
/** What is there. */
const loaded = new Set<string>();
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

/** Begin with the texts of both apps, and with those of one of them. Rejects where none come in any language. */
export async function startLanguages(...own: readonly TextFile[]): Promise<void> {
  for (const one of own) files.add(one);
  loaded.clear(); // what follows begins with nothing
  await i18next
    .use(formatter)
    .use(initReactI18next)
    .init({
      lng: "en",
      // Every language has every text.
      fallbackLng: false,
      defaultNS: "common",
      resources: {},
      interpolation: {
        escapeValue: false, // React escapes
        alwaysFormat: true,
      },
      returnNull: false,
    });
  const language = preferredLanguage(kept(), navigator.languages);
  if (await changeLanguage(language)) return;
  await load("en");
  await i18next.changeLanguage("en");
}

/** Load the texts of all pages, in the language of the page and in each that is chosen later. Rejects where they do not come. */
export async function needAllTexts(): Promise<void> {
  needed.add("rest");
  let language: string;
  do {
    language = i18next.language;
    await load(language);
  } while (language !== i18next.language);
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
    let known: number;
    do {
      known = needed.size;
      await load(language);
    } while (needed.size > known); // a page may have asked for more meanwhile
  } catch {
    isLoaded = false;
  }
  if (wanted !== language) return false; // another one was asked for meanwhile
  sayMissed(isLoaded ? null : language);
  if (isLoaded) await i18next.changeLanguage(language);
  mark(i18next.language);
  return isLoaded;
}

async function load(language: string): Promise<void> {
  const wanting = [...needed].flatMap((part) => [...files].map((file) => [part, file] as const));
  await Promise.all(
    wanting.map(async ([part, file]) => {
      const name = `./${language}/${file}.json`;
      if (loaded.has(`${part} ${name}`) || (language === "en" && file === "said")) return;
      const address = PARTS[part][name];
      if (address === undefined) throw new Error(`There is no ${file} in ${language}.`);
      // One part adds to the other, also within a group.
      i18next.addResourceBundle(language, file, await read(address), true);
      loaded.add(`${part} ${name}`);
    }),
  );
}

/** Return texts. Rejects as a question to the API does that has no answer. */
async function read(address: string): Promise<object> {
  const answer = await fetch(address);
  if (!answer.ok) throw await errorOf(answer);
  return (await answer.json()) as object;
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
