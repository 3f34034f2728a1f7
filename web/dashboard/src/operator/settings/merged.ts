/** What others changed of a table's rows while they were edited here. */
import { cellOf, type Row, type Table } from "./tables";

/**
 * Return what others have made of the rows, `fresh`, with one's own changes since `begun` on top: rows added, taken away,
 * and cells written. Rows are the same that have the same key, or in a list the same name.
 */
export function merged(
  table: Table,
  { begun, own, fresh }: Readonly<Record<"begun" | "own" | "fresh", readonly Row[]>>,
): readonly Row[] {
  const [old, mine, theirs] = [keyed(table, begun), keyed(table, own), keyed(table, fresh)];
  const found = [...theirs].filter(([key]) => mine.has(key) || !old.has(key));
  let at = 0;
  for (const [key, row] of mine) {
    const before = old.get(key);
    const place = found.findIndex(([other]) => other === key);
    if (place === -1) {
      // It is one's own, or was taken away by somebody else: it stays away unless it was changed here.
      if (before === undefined || changesOf(table, before, row).length > 0) found.splice(at++, 0, [key, row]);
      continue;
    }
    const changes = Object.fromEntries(changesOf(table, before ?? {}, row));
    found[place] = [key, { ...found[place]?.[1], ...changes }];
    at = place + 1;
  }
  return found.map(([, row]) => row);
}

/** Return the rows by what tells each from the others; those of a list are called by their names. */
function keyed(table: Table, rows: readonly Row[]): ReadonlyMap<string, Row> {
  const counted = new Map<string, number>();
  return new Map(
    rows.map((row, index) => {
      const key = table.isList === true ? cellOf(row, "name").trim() : table.placeOf(row, index);
      const number = counted.get(key) ?? 0;
      counted.set(key, number + 1);
      return [`${key} ${String(number)}`, row];
    }),
  );
}

/** Return the cells of a row that are not as they were. */
function changesOf(table: Table, before: Row, row: Row): readonly (readonly [string, string])[] {
  return table.columns
    .map(({ name }) => [name, cellOf(row, name)] as const)
    .filter(([name, text]) => text !== cellOf(before, name));
}
