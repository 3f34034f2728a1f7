/**
 * What people do on pages, act by act: pressed, said before it is done, asked of the gateway, refused, and kept on the
 * screen. An act of an app without a row, or tested by a file of its own, fails.
 */
import { fireEvent, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";

import { json } from "./render";
import { offered, reads, routesOf, SENTENCE, Visit, type App, type Place } from "./visit";

type Method = "POST" | "PUT" | "PATCH" | "DELETE";

export interface Act extends Place {
  readonly route: string;
  /** What is pressed; where several are called so, in the row or the part of the page that has this text. */
  readonly press: string;
  readonly within?: string;
  /** What is typed, by the names of the fields. */
  readonly filled?: Readonly<Record<string, string>>;
  /** What is chosen of lists, by the names of the fields. */
  readonly chosen?: Readonly<Record<string, string>>;
  /** What is said before it is done; nothing where it is done at once, and can be undone or repeated. */
  readonly says: string | null;
  readonly asks: `${Method} /${string}`;
  /** What is sent with it; nothing where the address says all. */
  readonly body?: object;
}

interface Acts {
  readonly app: App;
  /** The source of the app's pages, by file. */
  readonly sources: Readonly<Record<string, string>>;
  readonly rows: readonly Act[];
  /** What is pressed in tests of its own, by the end of the file that does. */
  readonly elsewhere: Readonly<Record<string, string>>;
}

const CALLS = /\bapi\s*\.(POST|PUT|PATCH|DELETE)\(\s*(?:"([^"]+)")?/g;
/** What a test calls by a name, such as the path of what it asks for. */
const NAMED = /\bconst (\w+) = ["`]([^"`]+)["`];/g;

export function declareActs({ app, sources, rows, elsewhere }: Acts): void {
  const routes = routesOf(app);

  it("every act of the app is pressed here, or in a test of its own", () => {
    const missing: string[] = [];
    const used = new Set<string>();
    for (const [file, source] of Object.entries(sources)) {
      if (/\.test\.tsx?$/.test(file)) continue;
      for (const [, method = "", path] of source.matchAll(CALLS)) {
        // What is asked for by another name than its own cannot be looked for.
        if (path === undefined) {
          missing.push(`${method} of ${file}`);
          continue;
        }
        const call = `${method} ${path}`;
        const pattern = `${method} ${asPattern(path)}`;
        if (rows.some(({ asks }) => new RegExp(`^${pattern}$`).test(asks))) continue;
        const test = elsewhere[call];
        const [, tested = ""] =
          Object.entries(sources).find(([name]) => test !== undefined && name.endsWith(`/${test}`)) ?? [];
        if (new RegExp(`["\`]${pattern}["\`]`).test(spelledOut(tested))) used.add(call);
        else missing.push(call);
      }
    }
    expect(missing).toEqual([]);
    // Whatever is said to be elsewhere is.
    expect(Object.keys(elsewhere).filter((call) => !used.has(call))).toEqual([]);
  });

  it.each(rows.map((row) => [`${row.press} · ${row.asks}`, row] as const))("%s", async (_, row) => {
    const route = routes.get(row.route);
    if (route === undefined) throw new Error(`There is no page at ${row.route}.`);
    const visit = new Visit(app, route, row);
    const asked: Request[] = [];
    await visit.begin((request) => {
      if (request.method === "GET") return visit.full(request);
      asked.push(request.clone());
      return json({ success: false, error: SENTENCE, code: "SOMETHING_WRONG" }, 422);
    });
    await press(row);
    if (row.says !== null) {
      const dialog = dialogOf();
      expect(dialog.textContent).toContain(row.says);
      expect(asked).toEqual([]);
      for (const [name, value] of Object.entries(row.filled ?? {})) {
        fireEvent.change(fieldOf(dialog, name), { target: { value } });
      }
      for (const [name, option] of Object.entries(row.chosen ?? {})) await choose(fieldOf(dialog, name), option);
      const form = dialog.querySelector("form");
      if (form === null) throw new Error("The dialog sends nothing.");
      await waitFor(() => {
        expect(dialog.querySelector<HTMLButtonElement>("button[type=submit]")?.disabled).toBe(false);
      });
      fireEvent.submit(form);
    }
    await reads(SENTENCE, "SOMETHING_WRONG");
    const [request] = asked;
    if (request === undefined) throw new Error("Nothing was asked for.");
    expect(asked).toHaveLength(1);
    expect(`${request.method} ${new URL(request.url).pathname}`).toBe(row.asks);
    const text = await request.text();
    if (row.body === undefined) expect(text).toBe("");
    else expect(JSON.parse(text)).toEqual(row.body);
    expect(request.headers.has("Idempotency-Key")).toBe(request.method === "POST" && !text.includes("idempotencyKey"));
    if (row.says === null) return;
    // What was refused is still there, with all that was typed: to be mended, and sent again.
    const kept = dialogOf();
    expect(kept.textContent).toContain(row.says);
    for (const [name, value] of Object.entries(row.filled ?? {})) expect(fieldOf(kept, name).value).toBe(value);
  });
}

/** Return what finds a path with whatever stands in the place of what it leaves open. */
function asPattern(path: string): string {
  return path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/\"'` ]+");
}

/** Return a test's source with what it gave a name to in the place of the name. */
function spelledOut(source: string): string {
  let text = source;
  for (const [, name = "", value = ""] of source.matchAll(NAMED)) text = text.replaceAll(`\${${name}}`, value);
  return text;
}

async function press({ press: name, within }: Act): Promise<void> {
  let found: HTMLButtonElement | undefined;
  await waitFor(() => {
    const parts = within === undefined ? [document] : partsWith(within);
    const offers = [...parts.flatMap((part) => [...part.querySelectorAll("button")]), ...menuItems()];
    found = offers.find((one) => one.textContent.trim() === name);
    if (found !== undefined) return;
    const closed = "[aria-haspopup=menu][aria-expanded=false]";
    const [menu] = parts.flatMap((part) => [...part.querySelectorAll(closed)]);
    if (menu !== undefined) fireEvent.click(menu);
    throw new Error(`Nothing is called ${name} among ${offered().join(", ")}.`);
  });
  if (found !== undefined) fireEvent.click(found);
}

function menuItems(): readonly HTMLButtonElement[] {
  return [...document.querySelectorAll<HTMLButtonElement>("button[role=menuitem]")];
}

/** Return the rows and parts of the page that have a text, the smallest first. */
function partsWith(text: string): readonly Element[] {
  const all = [...document.querySelectorAll("tr, li, section")].filter((one) => one.textContent.includes(text));
  return all.sort((one, other) => one.textContent.length - other.textContent.length);
}

function dialogOf(): Element {
  const dialog = document.querySelector("[role=dialog]");
  if (dialog === null) throw new Error("No dialog is open.");
  return dialog;
}

function fieldOf(dialog: Element, name: string): HTMLInputElement {
  const label = [...dialog.querySelectorAll("label")].find((one) => one.textContent.replace(" *", "") === name);
  const field = document.getElementById(label?.htmlFor ?? "");
  if (!(field instanceof HTMLInputElement)) throw new Error(`There is no field that is called ${name}.`);
  return field;
}

async function choose(field: HTMLInputElement, option: string): Promise<void> {
  fireEvent.click(field);
  await waitFor(() => {
    const found = [...document.querySelectorAll("[role=option]")].find((one) => one.textContent.trim() === option);
    if (found === undefined) throw new Error(`${option} is not offered.`);
    fireEvent.click(found);
  });
}
