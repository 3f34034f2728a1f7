/** What the bundler knows of a module. */
interface Modules {
  readonly getModuleInfo: (id: string) => { readonly importers: readonly string[] } | null;
}

/** When an app needs a module: seldomest first. Inside is around every page, outside is where one signs in. */
const WHEN = ["later", "overview", "inside", "outside", "always"] as const;

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

/** Return what imports a module, itself and what does so through others among it. */
function importersOf(id: string, modules: Modules): readonly string[] {
  const found = new Set([id]);
  for (const one of found) {
    for (const by of modules.getModuleInfo(one)?.importers ?? []) if (!LISTS_COMPONENTS.test(by)) found.add(by);
  }
  return [...found];
}

/** Say when each app needs a module, by places in `WHEN`. */
function neededWhen(id: string, modules: Modules): readonly number[] {
  const importers = importersOf(id, modules);
  return SEEN_FIRST.map((parts) => {
    const isNeeded = (when: keyof typeof parts) => importers.some((one) => one.endsWith(parts[when]));
    const isInside = isNeeded("inside") || isNeeded("overview");
    if (isNeeded("always") || (isNeeded("outside") && isInside)) return WHEN.indexOf("always");
    const when = (["outside", "inside", "overview"] as const).find(isNeeded);
    return WHEN.indexOf(when ?? "later");
  });
}

/**
 * Return groups of what is needed first, for the bundler to make one file of each. Left to itself it makes one of whatever
 * another set of pages shares, which were seventy scripts until the overview was there.
 *
 * Each group takes with it what its modules import. That is needed at least as often, and so in a group before it.
 */
export function groupsNeededFirst() {
  const most = SEEN_FIRST.length * (WHEN.length - 1);
  return Array.from({ length: most }, (_, index) => index + 1).map((often) => ({
    debugName: `needed first ${often}`,
    priority: often,
    name: (id: string, modules: Modules) => {
      const isPart = SEEN_FIRST.some((parts) => Object.values(parts).some((part) => id.endsWith(part)));
      if (isPart) return null;
      const when = neededWhen(id, modules);
      const sum = when.reduce((total, one) => total + one, 0);
      return sum === often ? `first-${when.map((place) => WHEN[place]).join("-")}` : null;
    },
  }));
}
