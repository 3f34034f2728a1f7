/** Amounts, times and addresses as people read them. Amounts are texts from end to end: no number ever holds one. */
import { directionOf, localeOf } from "../i18n/locale";

/** What writes something as a language does; `Intl` has several. */
type Format<Made, Options> = new (locale: string, options?: Options) => Made;

const formats = new Map<string, unknown>();

/** Return the format of a language and a style. Each is made once: making one takes longer than a row of a list. */
function formatOf<Made, Options>(Kind: Format<Made, Options>, language: string, options?: Options): Made {
  const locale = localeOf(language);
  const key = `${Kind.name} ${locale} ${options === undefined ? "" : JSON.stringify(options)}`;
  let format = formats.get(key) as Made | undefined;
  if (format === undefined) {
    format = new Kind(locale, options);
    formats.set(key, format);
  }
  return format;
}

const SHOWN_DECIMALS = 8;

export interface ShownAmount {
  readonly text: string;
  /** Whether there are more digits than are shown. */
  readonly isCut: boolean;
}

/** Group an amount's digits as the language does, and cut what is behind the eighth decimal, which is never rounded. */
export function showAmount(amount: string, language: string, decimals = SHOWN_DECIMALS): ShownAmount {
  const match = /^([+-]?)(\d+)(?:\.(\d+))?$/.exec(amount);
  if (match === null) return { text: amount, isCut: false };
  const [, sign = "", whole = "0", fraction = ""] = match;
  const shown = fraction.slice(0, decimals);
  const { point, digits } = writtenIn(language);
  const behind = shown === "" ? "" : point + Array.from(shown, (digit) => digits[Number(digit)]).join("");
  const text = sign.replace("-", "−") + numbers(language).format(BigInt(whole)) + behind;
  return { text, isCut: fraction.length > shown.length };
}

export interface DotAsThousands {
  /** What is read and sent. */
  readonly amount: string;
  /** What may be meant. */
  readonly thousands: string;
}

/**
 * Return what a typed amount such as `1.000` is, and what it may be meant for, where a language parts decimals with a comma
 * and so may group thousands with a dot; null for every other amount, and every other language.
 */
export function dotAsThousands(typed: string, language: string): DotAsThousands | null {
  const [, whole, fraction] = /^([1-9]\d{0,2})\.(\d{3})$/.exec(typed.trim()) ?? [];
  if (whole === undefined || fraction === undefined || writtenIn(language).point !== ",") return null;
  const behind = fraction.replace(/0+$/, "");
  const amount = behind === "" ? whole : `${whole}.${behind}`;
  return { amount: showAmount(amount, language).text, thousands: showAmount(whole + fraction, language).text };
}

/** As many as every browser takes. */
const FIAT_DECIMALS = 20;

interface Written {
  readonly point: string;
  readonly digits: readonly string[];
}

const written = new Map<string, Written>();

/** Return how a language writes what stands before decimals, and each digit. */
function writtenIn(language: string): Written {
  const locale = localeOf(language);
  let known = written.get(locale);
  if (known === undefined) {
    const format = numbers(language);
    const point = format.formatToParts(1.5).find((part) => part.type === "decimal")?.value ?? ".";
    known = { point, digits: Array.from({ length: 10 }, (_, digit) => format.format(digit)) };
    written.set(locale, known);
  }
  return known;
}

/** Write an amount of money with every digit that the API sent; languages leave some out of some currencies. */
export function showFiat(amount: string, currency: string, language: string): string {
  const style = { style: "currency", currency: currency.toUpperCase(), maximumFractionDigits: FIAT_DECIMALS } as const;
  const format = formatOf(Intl.NumberFormat, language, style);
  // The standard takes exact decimals as texts; TypeScript's own declaration of it wants a template.
  return joined(format.formatToParts(amount as `${number}`), language);
}

const LEFT_TO_RIGHT_MARK = "\u200e";

/** Join the parts of an amount of money: `US$` keeps its order among Arabic words, too. */
function joined(parts: readonly Intl.NumberFormatPart[], language: string): string {
  const behind = directionOf(language) === "rtl" ? LEFT_TO_RIGHT_MARK : "";
  return parts
    .map(({ type, value }) => {
      // Below zero it has the same sign as an amount of a token: many languages would write a hyphen.
      if (type === "minusSign") return value.replace("-", "−");
      return type === "currency" ? value + behind : value;
    })
    .join("");
}

/** An axis ends at one digit with zeros around it, and its half has two at most. */
const AXIS_DIGITS = 2;

/** Write about how much money it is, for the axis of a chart alone: it rounds, and is a number. */
export function showAbout(amount: number, currency: string, language: string): string {
  const style = {
    style: "currency",
    currency: currency.toUpperCase(),
    notation: "compact",
    maximumSignificantDigits: AXIS_DIGITS,
  } as const;
  return joined(formatOf(Intl.NumberFormat, language, style).formatToParts(amount), language);
}

/** Return what writes counts, heights and the like; amounts are no numbers. */
export function numbers(language: string): Intl.NumberFormat {
  return formatOf(Intl.NumberFormat, language);
}

const PERCENT_DECIMALS = 20;

/** Write a percentage as the API says it, with all of its digits. */
export function showPercent(percent: string, language: string): string {
  const style = { style: "unit", unit: "percent", maximumFractionDigits: PERCENT_DECIMALS } as const;
  return formatOf(Intl.NumberFormat, language, style).format(percent as `${number}`);
}

/** Write so many hours, minutes or the like, with the name of the unit. */
export function showUnit(count: number, unit: string, language: string): string {
  return formatOf(Intl.NumberFormat, language, { style: "unit", unit, unitDisplay: "long" }).format(count);
}

const DURATIONS = [
  ["hour", 3_600],
  ["minute", 60],
] as const;
const SPANS = [["day", 86_400], ...DURATIONS] as const;

function showWhole(seconds: number, units: readonly (readonly [string, number])[], language: string): string {
  const [unit, size] = units.find(([, one]) => seconds > 0 && seconds % one === 0) ?? ["second", 1];
  return showUnit(seconds / size, unit, language);
}

/** Write so many seconds in the largest unit of which it is a whole number; a day is written as hours. */
export function showDuration(seconds: number, language: string): string {
  return showWhole(seconds, DURATIONS, language);
}

/** Write so many seconds of minutes, hours or days in the largest unit of which it is a whole number. */
export function showSpan(seconds: number, language: string): string {
  return showWhole(seconds, SPANS, language);
}

const TOOK_DECIMALS = 1;

function tenths(seconds: number, size: number): number {
  return (Math.round((10 * seconds) / size) / 10) * size;
}

/** Write how long something took: in milliseconds below a second, then rounded, in the largest unit that it fills. */
export function showTook(milliseconds: number, language: string): string {
  const seconds = milliseconds / 1_000;
  if (seconds < 1) return showMilliseconds(milliseconds, language);
  // As it reads in the unit below: 59.96 seconds are a minute, not 60 seconds.
  const filled = SPANS.find(([, one], at) => tenths(seconds, SPANS[at + 1]?.[1] ?? 1) >= one);
  const [unit, size] = filled ?? ["second", 1];
  const style = { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: TOOK_DECIMALS } as const;
  return formatOf(Intl.NumberFormat, language, style).format(seconds / size);
}

export function showMilliseconds(milliseconds: number, language: string): string {
  return formatOf(Intl.NumberFormat, language, { style: "unit", unit: "millisecond" }).format(milliseconds);
}

/** Name several, one beside the other; `long` as in a sentence, with the last behind an "and". */
export function showList(names: readonly string[], language: string, style: "narrow" | "long" = "narrow"): string {
  return formatOf(Intl.ListFormat, language, { style }).format(names);
}

/** Name the first of several, for a sentence that says itself that there are others: no "and" before the last of these. */
export function showFirst(names: readonly string[], language: string): string {
  const parts = formatOf(Intl.ListFormat, language, { style: "narrow" }).formatToParts([...names, "…"]);
  const last = parts.findLastIndex((one, at) => one.type === "element" && at < parts.length - 1);
  return parts
    .slice(0, last + 1)
    .map((one) => one.value)
    .join("");
}

/** Name a month, such as `2026-01`. */
export function showMonth(month: string, language: string): string {
  const style = { year: "numeric", month: "long", timeZone: "UTC" } as const;
  return formatOf(Intl.DateTimeFormat, language, style).format(new Date(`${month}-01T00:00:00Z`));
}

export function showDay(moment: string, language: string): string {
  return formatOf(Intl.DateTimeFormat, language, { dateStyle: "medium" }).format(new Date(moment));
}

export function showHour(moment: string, language: string): string {
  return formatOf(Intl.DateTimeFormat, language, { hour: "numeric", minute: "2-digit" }).format(new Date(moment));
}

export function showTime(moment: string, language: string): string {
  return formatOf(Intl.DateTimeFormat, language, { dateStyle: "medium", timeStyle: "short" }).format(new Date(moment));
}

const DAY_S = 86_400;
const STEPS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
const RELATIVE_DAYS_MAX = 7;

/** Say how long ago, or in how long: from a day on in days of the calendar, and by the date from a week on. */
export function showAge(moment: string, language: string, now: number): string {
  const at = new Date(moment);
  const seconds = Math.round((at.getTime() - now) / 1000);
  const format = formatOf(Intl.RelativeTimeFormat, language, { numeric: "auto" });
  if (Math.abs(seconds) >= DAY_S) {
    const days = dayOf(at) - dayOf(new Date(now));
    return Math.abs(days) >= RELATIVE_DAYS_MAX ? showDay(moment, language) : format.format(days, "day");
  }
  const [unit, size] = STEPS.find(([, one]) => Math.abs(seconds) >= one) ?? (["second", 1] as const);
  return format.format(Math.trunc(seconds / size), unit);
}

/** Number the days of the calendar where the reader is: some of them have 23 or 25 hours. */
function dayOf(moment: Date): number {
  return Date.UTC(moment.getFullYear(), moment.getMonth(), moment.getDate()) / (DAY_S * 1000);
}

export interface AddressParts {
  readonly head: string;
  readonly middle: string;
  readonly tail: string;
}

/** Split an address where people compare it: its first and its last characters. */
export function addressParts(address: string): AddressParts {
  const head = address.startsWith("0x") ? 6 : 4;
  const tail = 6;
  if (address.length <= head + tail) return { head: address, middle: "", tail: "" };
  return { head: address.slice(0, head), middle: address.slice(head, -tail), tail: address.slice(-tail) };
}

const ID_ENDS = 4;

/** Shorten an id to what it is of, and the first and last characters of the rest: `pay_8x7e…ta0v`. */
export function shortId(id: string): string {
  const [, prefix = "", rest = id] = /^((?:[a-z_]+:)?[a-z]+_)(.+)$/.exec(id) ?? [];
  return rest.length <= 2 * ID_ENDS + 1 ? id : `${prefix}${rest.slice(0, ID_ENDS)}…${rest.slice(-ID_ENDS)}`;
}
