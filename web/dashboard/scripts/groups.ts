/** What the bundler knows of a module. */
interface Modules {
  readonly getModuleInfo: (id: string) => {
    readonly importers: readonly string[];
    readonly dynamicImporters: readonly string[];
  } | null;
}

/** When an app needs a module: seldomest first. Inside is around every page, outside is where one signs in. */
const WHEN = ["never", "later", "overview", "inside", "outside", "always"] as const;

/** The modules of each app that are loaded until a page is there. */
const SEEN_FIRST = [
  {
    always: "src/merchant/main.tsx",
    outside: "src/merchant/auth/SignIn.tsx",
    inside: "src/merchant/ProjectLayout.tsx",
    overview: "src/merchant/overview/OverviewPage.tsx",
  },
  {
    always: "src/operator/main.tsx",
    outside: "src/operator/auth/SignIn.tsx",
    inside: "src/operator/Layout.tsx",
    overview: "src/operator/overview/OverviewPage.tsx",
  },
];

/** It lists hundreds of components, of which whoever imports it needs a few. */
const LISTS_COMPONENTS = /@mantine\/.*\/index\.m?js$/;

/** Return what imports a module, itself and what does so through others among it; also when it is used, where that is asked. */
function importersOf(id: string, modules: Modules, isLaterToo: boolean): readonly string[] {
  const found = new Set([id]);
  for (const one of found) {
    const { importers = [], dynamicImporters = [] } = modules.getModuleInfo(one) ?? {};
    for (const by of isLaterToo ? [...importers, ...dynamicImporters] : importers) {
      if (!LISTS_COMPONENTS.test(by)) found.add(by);
    }
  }
  return [...found];
}

/** Say when each app needs a module, by places in `WHEN`. */
function neededWhen(id: string, modules: Modules): readonly number[] {
  const importers = importersOf(id, modules, false);
  const everImporters = importersOf(id, modules, true);
  return SEEN_FIRST.map((parts) => {
    const isNeeded = (when: keyof typeof parts) => importers.some((one) => one.endsWith(parts[when]));
    const isInside = isNeeded("inside") || isNeeded("overview");
    if (isNeeded("always") || (isNeeded("outside") && isInside)) return WHEN.indexOf("always");
    const when = (["outside", "inside", "overview"] as const).find(isNeeded);
    // What one app never needs goes to no group with what it needs: it would load the other app's code.
    return WHEN.indexOf(when ?? (everImporters.some((one) => one.endsWith(parts.always)) ? "later" : "never"));
  });
}

/** Say when each app needs a module; null for the parts themselves, which stay files of their own. */
function sharedWhen(id: string, modules: Modules): readonly number[] | null {
  const isPart = SEEN_FIRST.some((parts) => Object.values(parts).some((part) => id.endsWith(part)));
  return isPart ? null : neededWhen(id, modules);
}

/**
 * Return groups of what is needed first, for the bundler to make one file of each. Left to itself it makes one of whatever
 * another set of pages shares, which were seventy scripts until the overview was there.
 *
 * Each group takes with it what its modules import. That is needed at least as often, and so in a group before it.
 */
export function groupsNeededFirst() {
  const later = WHEN.indexOf("later");
  const always = WHEN.indexOf("always");
  const most = SEEN_FIRST.length * always;
  const groups = Array.from({ length: most }, (_, index) => index + 1).map((often) => ({
    debugName: `needed first ${often}`,
    priority: often,
    name: (id: string, modules: Modules) => {
      const when = sharedWhen(id, modules);
      if (when === null || Math.max(...when) <= later) return null;
      const sum = when.reduce((total, one) => total + one, 0);
      return sum === often ? `first-${when.map((place) => WHEN[place]).join("-")}` : null;
    },
  }));
  // Libraries change more seldom than the rest: a browser has those that are always needed from the release before. Their
  // style sheets stay among the others, in whose order they count.
  const libraries = {
    debugName: "libraries",
    priority: most + 1,
    name: (id: string, modules: Modules) => {
      const isAlways = sharedWhen(id, modules)?.every((one) => one === always) ?? false;
      return isAlways && /\/node_modules\/.*js$/.test(id) ? "libraries" : null;
    },
  };
  return [libraries, ...groups];
}
