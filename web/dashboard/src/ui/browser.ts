/** What a browser says it is, in the words of people: `Firefox 140 · Windows`. */

const BROWSERS: readonly (readonly [name: string, mark: RegExp])[] = [
  ["Edge", /Edg(?:A|iOS)?\/(\d+)/],
  ["Opera", /OPR\/(\d+)/],
  ["Firefox", /(?:Firefox|FxiOS)\/(\d+)/],
  ["Chrome", /(?:Headless)?(?:Chrome|CriOS)\/(\d+)/],
  ["Safari", /Version\/(\d+).* Safari\//],
];
const SYSTEMS: readonly (readonly [name: string, mark: RegExp])[] = [
  ["iOS", /iPhone|iPad/],
  ["Android", /Android/],
  ["Windows", /Windows NT/],
  ["macOS", /Mac OS X/],
  ["ChromeOS", /CrOS/],
  ["Linux", /Linux/],
];

/** Return a browser and its system by their names; what says neither, as it is. */
export function browserName(userAgent: string): string {
  const browser = BROWSERS.flatMap(([name, mark]) => {
    const version = mark.exec(userAgent)?.[1];
    return version === undefined ? [] : [`${name} ${version}`];
  })[0];
  const system = SYSTEMS.find(([, mark]) => mark.test(userAgent))?.[0];
  if (browser === undefined) return userAgent;
  return system === undefined ? browser : `${browser} · ${system}`;
}
