/** A file of texts: groups of texts, and groups within them. */
export interface Tree {
  readonly [key: string]: string | Tree;
}

interface Parts {
  readonly first: Tree;
  readonly rest: Tree;
}

const PLURAL = /_(?:zero|one|two|few|many|other)$/;

/** Return what these names lead to, such as `ui` or `payment.title`, and all else. A text comes with all its plurals. */
export function splitTexts(tree: Tree, names: readonly string[], above = ""): Parts {
  const first: Record<string, string | Tree> = {};
  const rest: Record<string, string | Tree> = {};
  for (const [key, value] of Object.entries(tree)) {
    const name = `${above}${key}`;
    if (names.includes(name) || names.includes(name.replace(PLURAL, ""))) first[key] = value;
    else if (typeof value !== "string" && names.some((one) => one.startsWith(`${name}.`))) {
      const inside = splitTexts(value, names, `${name}.`);
      first[key] = inside.first;
      rest[key] = inside.rest;
    } else rest[key] = value;
  }
  return { first, rest };
}
