/** What the API's own descriptions give as the example of each answer: what every page is shown with in tests. */
import merchant from "../api/generated/dashboard.json?raw";
import programs from "../api/generated/merchant.json?raw";
import operator from "../api/generated/operator.json?raw";

interface Answered {
  readonly content?: Readonly<Record<string, { readonly example?: object }>>;
}

interface Document {
  readonly paths: Readonly<
    Record<string, { readonly get?: { readonly responses: Readonly<Record<string, Answered>> } }>
  >;
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly properties?: Readonly<Record<string, Property>> }>>;
  };
}

interface Property {
  readonly items?: { readonly enum?: readonly string[] };
}

export interface Described {
  /** Gives the example of what a path answers; undefined for one that is not described. */
  readonly example: (path: string) => object | undefined;
  /** All that any role permits. */
  readonly permissions: readonly string[];
}

function read(text: string, self: string): Described {
  const { paths, components } = JSON.parse(text) as Document;
  const templates: { readonly pattern: RegExp; readonly example: object }[] = [];
  for (const [path, { get }] of Object.entries(paths)) {
    const example = get?.responses["200"]?.content?.["application/json"]?.example;
    if (example === undefined) continue;
    const pattern = new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`);
    templates.push({ pattern, example });
  }
  // Of two that fit, the one that leaves less open: what lists all is not one that is called "list".
  templates.sort((one, other) => openParts(one.pattern) - openParts(other.pattern));
  const permissions = components.schemas[self]?.properties?.permissions?.items?.enum ?? [];
  return { example: (path) => templates.find(({ pattern }) => pattern.test(path))?.example, permissions };
}

function openParts({ source }: RegExp): number {
  return source.split("[^/]+").length;
}

const ofMerchants = read(merchant, "OwnMemberAnswer");
// What is in a tracker is read as the merchant's own programs read it.
const ofPrograms = read(programs, "");

export const DESCRIBED = {
  merchant: { ...ofMerchants, example: (path: string) => ofMerchants.example(path) ?? ofPrograms.example(path) },
  operator: read(operator, "OperatorSelf"),
} as const;

/** Return an answer with nothing in it: its lists are empty, and nothing was counted. */
export function emptied(answer: object): object {
  return Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, name === "total" ? 0 : empty(value)]));
}

function empty(value: unknown): unknown {
  if (Array.isArray(value)) return [];
  return value === null || typeof value !== "object" ? value : emptied(value);
}
