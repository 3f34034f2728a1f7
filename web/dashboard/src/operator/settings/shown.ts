import { showAmount, showFiat, showPercent, showUnit } from "../../ui/format";
import { fromUnits } from "../../ui/units";
import { useWords } from "../api";

import type { Field, Value } from "./fields";

export const PERCENT_DECIMALS = 2;

/** Return a value as it is typed. The API has hundredths of a percent, people have percents. */
export function typedOf(kind: Field["kind"], value: Value): string {
  return kind === "percent" ? fromUnits(BigInt(value), PERCENT_DECIMALS) : String(value);
}

/** Return what writes a value with its unit. */
export function useShown(): (field: Field, value: Value) => string {
  const { t, i18n } = useWords();
  return ({ kind, unit }, value) => {
    if (typeof value === "boolean") return t(value ? "settings.on" : "settings.off");
    if (kind === "percent") return showPercent(typedOf(kind, value), i18n.language);
    if (unit === "usd") return showFiat(String(value), unit, i18n.language);
    if (typeof value === "string") return value;
    return unit === undefined ? showAmount(String(value), i18n.language).text : showUnit(value, unit, i18n.language);
  };
}
