import { expect, it } from "vitest";

import first from "./first.json";
import { splitTexts, type Tree } from "./split";

const sources = import.meta.glob<string>("../**/*.{ts,tsx}", { eager: true, import: "default", query: "?raw" });
const texts = import.meta.glob<Tree>(["./en/*.json", "./de/said.json"], { eager: true, import: "default" });

const PLURAL = /_(?:zero|one|two|few|many|other)$/;
const SAID = "../ui/Said.tsx";
/** What is seen before anybody is signed in, around every page, and on the overviews. */
const SEEN_FIRST = [
  ...["main", "auth/SignIn", "auth/SignUp", "auth/LostPassword", "ProjectLayout", "overview/OverviewPage"].map(
    (name) => `../merchant/${name}.tsx`,
  ),
  ...["main", "auth/SignIn", "Layout", "overview/OverviewPage"].map((name) => `../operator/${name}.tsx`),
];

/** Return the file that an import in another names, where it is one of the dashboards'. */
function imported(by: string, name: string): string | undefined {
  const path = new URL(name, `https://app/src/i18n/${by}`).pathname.replace("/src/", "../");
  const own = path.replace("../i18n/", "./");
  return [`${own}.ts`, `${own}.tsx`, `${own}/index.ts`].find((one) => Object.hasOwn(sources, one));
}

/** Return these files and all that they import, also what comes once it is asked for. */
function reached(from: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  const left = [...from];
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    if (found.has(path)) continue;
    const source = sources[path];
    if (source === undefined) throw new Error(`There is no ${path}.`);
    found.set(path, source);
    const names = [...source.matchAll(/^(?:import|export) (?!type\b)[^;]*?from "(\.[^"]+)"/gm)];
    // A router's pages bring their texts with them.
    if (!path.endsWith("/router.tsx")) names.push(...source.matchAll(/\bimport\("(\.[^"]+)"\)/g));
    for (const [, name] of names) {
      const file = name === undefined ? undefined : imported(path, name);
      if (file !== undefined) left.push(file);
    }
  }
  return found;
}

/** Return what the keys begin with of what is said with a code's meaning, by its name or by `useMeaning`. */
function meant(source: string): string[] {
  return [...source.matchAll(/(?:<Meaning\b[^>]*?\bof=|\bmeaning\()"(\w+)"/g)].map(([, of]) => `${of ?? ""}.`);
}

function keysOf(tree: Tree, above = ""): string[] {
  return Object.entries(tree).flatMap(([key, value]) =>
    typeof value === "string" ? [`${above}${key}`.replace(PLURAL, "")] : keysOf(value, `${above}${key}.`),
  );
}

it("has every text that is said before the others are loaded", () => {
  const files = reached(SEEN_FIRST);
  expect([...files.keys()]).toEqual(expect.arrayContaining(["../ui/Shell.tsx", "../operator/auth/Enrol.tsx"]));
  expect([...files.keys()]).not.toContain("../merchant/team/TeamPage.tsx");
  const late = (["common", "operator", "api"] as const).flatMap((name) => {
    const keys = keysOf(splitTexts(texts[`./en/${name}.json`] ?? {}, first[name]).rest);
    return [...files].flatMap(([path, source]) => {
      const begun = [...source.matchAll(/`(?:\w+:)?([\w.]+\.)\$\{/g)].map(([, one]) => one ?? "");
      if (name === "api") begun.push(...meant(source));
      return keys
        .filter(
          (key) =>
            source.includes(`"${key}"`) ||
            source.includes(`"${name}:${key}"`) ||
            begun.some((one) => key.startsWith(one)),
        )
        .map((key) => `${path} says ${name}:${key}`);
    });
  });
  expect(late).toEqual([]);
});

it("has every sentence of the API's that is said before the others are loaded, and no others", () => {
  const said = [...(sources[SAID] ?? "").matchAll(/^export function (\w+)\((?:(?!^\}).)*?<Said of="(\w+)"/gms)];
  expect(said.map(([, part]) => part)).toEqual(["Waits", "Failed", "Trouble"]);
  const groups = [...reached(SEEN_FIRST)].flatMap(([path, source]) => {
    if (path === SAID) return []; // what it says it says where it is asked to
    const own = [...source.matchAll(/<Said\b[^>]*?\bof="(\w+)"/g)].map(([, of]) => of);
    return [...own, ...said.filter(([, part]) => source.includes(`<${part} `)).map(([, , of]) => of)];
  });
  expect([...new Set(groups)].toSorted()).toEqual(first.said);
});

it("names no text that is not there", () => {
  for (const [name, names] of Object.entries(first)) {
    const tree = texts[name === "said" ? "./de/said.json" : `./en/${name}.json`];
    if (tree === undefined) throw new Error(`There is no ${name}.`);
    for (const one of names) expect(keysOf(splitTexts(tree, [one]).first), `${name}:${one}`).not.toEqual([]);
  }
});

it("splits a file into parts that together are the whole, and no text stands twice", () => {
  const tree = { a: { one_one: "x", one_other: "y", two: "z" }, b: { c: "v" }, d: "w" };
  expect(splitTexts(tree, ["a.one", "d"])).toEqual({
    first: { a: { one_one: "x", one_other: "y" }, d: "w" },
    rest: { a: { two: "z" }, b: { c: "v" } },
  });
});
