/**
 * Return the text of a value inside the text of a JSON object, by the names that lead to it, as it stands there: read and
 * written again, its bytes could be others. Null where there is none.
 */
export function rawAt(text: string, [name, ...names]: readonly string[]): string | null {
  if (name === undefined) return text.trim();
  let at = text.indexOf("{") + 1;
  while (at > 0) {
    const opened = text.indexOf('"', at);
    if (opened < 0) return null;
    const closed = endOf(text, opened);
    const begin = text.indexOf(":", closed) + 1;
    const end = endOf(text, begin);
    if (JSON.parse(text.slice(opened, closed)) === name) return rawAt(text.slice(begin, end), names);
    at = end + 1;
  }
  return null;
}

/** Return where the value ends that begins here, or after the space here. */
function endOf(text: string, begin: number): number {
  let depth = 0;
  for (let at = begin; at < text.length; at += 1) {
    const one = text.charAt(at);
    if (one === '"') {
      at = closeOf(text, at);
      if (depth === 0) return at + 1;
    } else if (one === "{" || one === "[") depth += 1;
    else if (one === "}" || one === "]") {
      // The end of what is around it ends a number, too.
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (one === "," && depth === 0) return at;
  }
  return text.length;
}

/** Return where the string's second quotation mark is. */
function closeOf(text: string, opened: number): number {
  let at = opened + 1;
  while (at < text.length && text.charAt(at) !== '"') at += text.charAt(at) === "\\" ? 2 : 1;
  return at;
}

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** Say whether a browser that reads this JSON text and writes it again keeps each of its numbers: it rounds long ones. */
export function keepsNumbers(text: string): boolean {
  const numbers = (text.match(STRING_OR_NUMBER) ?? []).filter((one) => !one.startsWith('"'));
  return numbers.every((one) => valueOf(one) === valueOf(String(Number(one))));
}

/** Return a number's text in one way for each value: its digits without zeros at both ends, and a power of ten. */
function valueOf(number: string): string {
  const [mantissa = "", exponent = "0"] = number.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.replace("-", "").split(".");
  const digits = (whole + fraction).replace(/^0+/, "");
  const kept = digits.replace(/0+$/, "");
  if (kept === "") return "0";
  const power = Number(exponent) - fraction.length + digits.length - kept.length;
  return `${mantissa.startsWith("-") ? "-" : ""}${kept}e${String(power)}`;
}
