import i18next from "i18next";
import { afterEach, describe, expect, it } from "vitest";

import { LANGUAGES, directionOf, insideSentence, localeOf, preferredLanguage, type Language } from "./locale";
import { chooseLanguage } from ".";

interface Tree {
  readonly [key: string]: string | Tree;
}

const all = import.meta.glob<Tree>("./*/*.json", { eager: true, import: "default" });
const OTHERS = (Object.keys(LANGUAGES) as Language[]).filter((one) => one !== "en");
const NAMES = ["common", "operator", "api"] as const;

/** What is written alike in English and in another language: names, and words that one has from the other. */
const ALIKE: ReadonlySet<string> = new Set(
  `Auditor,Block,Bridge,Bridges,Browser,Chain,Chains,Code,Coin,Coins,Confirmations,Contract,Credits,Details,E-mail,Endpoints,
  Finance,Gateway,Impossible,Invitations,Jobs,Limit,Limits,Live,Menu,Minutes,Mode,Name,Navigation,No,Nonce,Pages,Plan,Plugins,
  Problem,Sandbox,Secret,Sessions,Signatures,Signer,Slippage,Sources,Stake,Status,Support,Swap,Swaps,Tag,Team,Token,Tokens,Tracker,
  Trackers,Transaction,Transactions,Transfer,Type,URL,Unstake,Version,Wallet,Webhook URL,Webhooks,
  Worker`
    .split(",")
    .map((one) => one.trim()),
);

const PLURAL = /_(?:zero|one|two|few|many|other)$/;

function flat(tree: Tree, above = ""): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(tree)) {
    if (typeof value === "string") found.set(above + key, value);
    else for (const [inner, text] of flat(value, `${above}${key}.`)) found.set(inner, text);
  }
  return found;
}

function texts(language: string, name: string): Map<string, string> {
  const tree = all[`./${language}/${name}.json`];
  if (tree === undefined) throw new Error(`There is no ${name}.json in ${language}.`);
  return flat(tree);
}

/** Return the keys of English as another language has them: one for each of its plural's categories. */
function keysIn(language: string, english: Iterable<string>): Set<string> {
  const categories = new Intl.PluralRules(localeOf(language)).resolvedOptions().pluralCategories;
  const wanted = new Set<string>();
  for (const key of english) {
    if (PLURAL.test(key)) for (const one of categories) wanted.add(key.replace(PLURAL, `_${one}`));
    else wanted.add(key);
  }
  return wanted;
}

function marksOf(text: string): readonly string[] {
  return [...text.matchAll(/\{\{\w+\}\}|<\/?\w+>/g)].map(([mark]) => mark).sort();
}

/** A form for one or two things may say so in a word, without the number. */
function mayLackCount(key: string): boolean {
  return /_(?:zero|one|two)$/.test(key);
}

describe.each(OTHERS)("%s", (language) => {
  it.each(NAMES)("has the texts of %s, all of them and no others", (name) => {
    expect([...texts(language, name).keys()].sort()).toEqual([...keysIn(language, texts("en", name).keys())].sort());
  });

  it.each(NAMES)("has what %s puts into its texts", (name) => {
    const english = texts("en", name);
    for (const [key, text] of texts(language, name)) {
      const original = english.get(key) ?? english.get(key.replace(PLURAL, "_other")) ?? "";
      const wanted = marksOf(PLURAL.test(key) ? (english.get(key.replace(PLURAL, "_other")) ?? "") : original);
      const found = marksOf(text);
      if (mayLackCount(key) && !found.includes("{{count}}")) {
        expect(found, key).toEqual(wanted.filter((mark) => mark !== "{{count}}"));
      } else expect(found, key).toEqual(wanted);
    }
  });

  it.each(NAMES)("has translated %s", (name) => {
    const english = texts("en", name);
    for (const [key, text] of texts(language, name)) {
      expect(text.trim(), key).not.toBe("");
      if (!ALIKE.has(text)) expect(text, key).not.toBe(english.get(key));
    }
  });

  it("calls a page above it as in the navigation", () => {
    const [english, own] = [texts("en", "common"), texts(language, "common")];
    const titles = [...english.keys()].filter((key) => /^\w+\.title$/.test(key));
    const pages = [...english.keys()].filter((key) => key.startsWith("nav."));
    const alike = pages.flatMap((page) =>
      titles.filter((title) => english.get(title) === english.get(page)).map((title) => [page, title] as const),
    );
    expect(alike.length).toBeGreaterThan(15);
    for (const [page, title] of alike) expect(own.get(title), title).toBe(own.get(page));
  });

  it("says what the API says in as many sentences as the others", () => {
    const said = texts(language, "said");
    expect([...said.keys()].sort()).toEqual([...texts("de", "said").keys()].sort());
    for (const [key, text] of said) expect(text.trim(), key).not.toBe("");
  });
});

describe("languages", () => {
  it("have a folder each", () => {
    const folders = new Set(Object.keys(all).map((path) => path.split("/")[1]));
    expect([...folders].sort()).toEqual(Object.keys(LANGUAGES).sort());
  });

  it("are the one that was chosen, else the browser's first that is there, else English", () => {
    expect(preferredLanguage("ar", ["de-AT", "en"])).toBe("ar");
    expect(preferredLanguage(null, ["nl", "pt-PT", "en"])).toBe("pt");
    expect(preferredLanguage("tlh", ["xx"])).toBe("en");
    expect(preferredLanguage("constructor", [])).toBe("en");
  });

  it("write dates as the browser's region of them does", () => {
    expect(localeOf("en", ["de-AT", "en-GB", "en-US"])).toBe("en-GB");
    expect(localeOf("de", ["en-GB", "de"])).toBe("de");
    expect(localeOf("ar", ["ar-EG"])).toBe("ar-u-nu-latn");
  });

  it("put values into sentences as they write them", () => {
    expect(insideSentence(1234.5, "de")).toBe("1.234,5");
    expect(insideSentence(1234, "ar")).toBe("1,234");
    expect(insideSentence("Nordlicht", "de")).toBe("Nordlicht");
    expect(insideSentence("Nordlicht", "ar")).toBe("\u2068Nordlicht\u2069");
  });
});

describe("a chosen language", () => {
  afterEach(async () => {
    await chooseLanguage("en");
    localStorage.clear();
  });

  it("marks the page, counts as its grammar does, and is kept", async () => {
    await chooseLanguage("ar");
    const { documentElement: page } = document;
    expect([page.lang, page.dir, directionOf("ar")]).toEqual(["ar", "rtl", "rtl"]);
    expect(i18next.t("events.attempts", { count: 2 })).toBe("محاولتان");
    expect(i18next.t("events.attempts", { count: 3 })).toBe("3 محاولات");
    expect(localStorage.getItem("cambist-language")).toBe("ar");
    await chooseLanguage("pt");
    expect([page.lang, page.dir]).toEqual(["pt-BR", "ltr"]);
  });
});
