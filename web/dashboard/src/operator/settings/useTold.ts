import type { Told } from "../../ui/Changed";
import { showList } from "../../ui/format";
import { useWords } from "../api";

import { GROUPS, type Settings } from "./fields";
import { useColumnTitle } from "./Rows";
import { useShown } from "./shown";
import { cellOf, TABLES, type Row, type Table } from "./tables";

/** Return what tells of all settings, as their page names and shows them: of a table what belongs to its first column. */
export function useTold(): (settings: Settings) => readonly Told[] {
  const { t, i18n } = useWords();
  const shown = useShown();
  const title = useColumnTitle();

  function textOf({ columns: [, ...columns] }: Table, row: Row): string {
    const cells = columns.flatMap(({ name, kind, blank }): (readonly [string, string])[] => {
      const text = cellOf(row, name);
      if (kind === "switch") return [[name, t(text === "true" ? "settings.on" : "settings.off")]];
      if (text === "") return blank === undefined ? [] : [[name, t(`settings.${blank}`)]];
      return [[name, text]];
    });
    return cells.map(([name, text]) => (columns.length === 1 ? text : `${title(name)} ${text}`)).join(" \u00b7 ");
  }

  function ofTable(table: Table, settings: Settings): readonly Told[] {
    const texts = new Map<string, string[]>();
    for (const row of table.read(settings)) {
      const first = cellOf(row, table.columns[0]?.name ?? "");
      texts.set(first, [...(texts.get(first) ?? []), textOf(table, row)]);
    }
    return [...texts].map(([first, those]) => ({
      key: `${table.name} ${first}`,
      title: `${t(`table.${table.name}`)} \u00b7 ${first}`,
      value: those,
      text: showList(those, i18n.language),
    }));
  }

  return (settings) => [
    ...GROUPS.flatMap(({ fields }) => fields).map((field) => ({
      key: field.name,
      title: t(`settingName.${field.name}` as "settingName.payoutEnabled"),
      value: field.read(settings),
      text: shown(field, field.read(settings)),
    })),
    ...TABLES.flatMap((table) => ofTable(table, settings)),
  ];
}
