/** Days of a page's address, as the API takes times: in the time zone of whoever looks. */

const DAY = /^([1-9]\d{3})-(\d\d)-(\d\d)$/;

export function isDay(text: string): boolean {
  return DAY.test(text);
}

/**
 * Return the moments between which days are, for a list's `from` and `to`: from the first one's beginning to before the
 * day after the last one. What is no day is left out.
 */
export function timesOf(from: string | undefined, until: string | undefined): { from?: string; to?: string } {
  const begin = startOf(from, 0);
  const end = startOf(until, 1);
  return { ...(begin === null ? {} : { from: begin }), ...(end === null ? {} : { to: end }) };
}

function startOf(day: string | undefined, later: number): string | null {
  const [, year, month, date] = DAY.exec(day ?? "") ?? [];
  if (year === undefined || month === undefined || date === undefined) return null;
  // A day may begin or end with an hour that there is not, or twice: the calendar knows, a sum of hours does not.
  const found = new Date(Number(year), Number(month) - 1, Number(date) + later);
  return Number.isNaN(found.getTime()) ? null : found.toISOString();
}

/** Return a moment as a field for a day and a time of the day has it, in the time zone of whoever looks. */
export function typedMoment(at: number): string {
  const there = new Date(at);
  const two = (number: number) => String(number).padStart(2, "0");
  const day = `${String(there.getFullYear())}-${two(there.getMonth() + 1)}-${two(there.getDate())}`;
  return `${day}T${two(there.getHours())}:${two(there.getMinutes())}`;
}

/** Return what such a field has as the API takes it; null where it is no moment. */
export function momentOf(typed: string): string | null {
  const found = new Date(typed);
  return Number.isNaN(found.getTime()) ? null : found.toISOString();
}
