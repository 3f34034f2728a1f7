import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

import { groupsNeededFirst } from "./scripts/groups.ts";
import first from "./src/i18n/first.json" with { type: "json" };
import { splitTexts, type Tree } from "./src/i18n/split.ts";

/**
 * Gives the addresses of a file of texts in two parts, `?first` and `?rest`: what is seen first does not wait for the texts
 * of all pages. Texts are asked for as data: a module that did not come once does not come again until the page is left.
 */
function textsInParts(): Plugin {
  let isBuilding = false;
  return {
    name: "texts-in-parts",
    enforce: "pre",
    configResolved({ command }) {
      isBuilding = command === "build";
    },
    resolveId(source, importer) {
      const [, file, part] = /^\.\/(\w+\/\w+)\.json\?(first|rest)$/.exec(source) ?? [];
      if (importer === undefined || file === undefined || part === undefined) return null;
      // Without a name of its own, a part would be taken for the file.
      return `${importer.replace(/[^/]+$/, "")}${file}.${part}`;
    },
    async load(id) {
      const [, path, name, file, part] = /^(.+\/(src\/i18n\/\w+\/(\w+)))\.(first|rest)$/.exec(id) ?? [];
      if (path === undefined) return null;
      this.addWatchFile(`${path}.json`);
      const tree = JSON.parse(await this.fs.readFile(`${path}.json`, { encoding: "utf8" })) as Tree;
      const text = JSON.stringify(splitTexts(tree, first[file as keyof typeof first])[part as "first" | "rest"]);
      if (!isBuilding) {
        const address = `data:application/json,${encodeURIComponent(text)}`;
        return { code: `export default ${JSON.stringify(address)}`, moduleType: "js" };
      }
      const asset = { originalFileName: `${name}.${part}`, name: `${file}.json`, source: text, type: "asset" } as const;
      return { code: `export default import.meta.ROLLUP_FILE_URL_${this.emitFile(asset)}`, moduleType: "js" };
    },
  };
}

// The files are served below one path, under names that change with their content, and nothing is inlined: the pages'
// policy allows no inline scripts.
export default defineConfig({
  base: "/dashboard-assets/",
  plugins: [react(), textsInParts()],
  build: {
    outDir: "../src/cambist_web/dashboard/built",
    assetsDir: "",
    assetsInlineLimit: 0,
    emptyOutDir: true,
    // What imports what: a test counts what is loaded first.
    manifest: "manifest.json",
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { dashboard: "dashboard.html", operator: "operator.html" },
      output: { codeSplitting: { groups: groupsNeededFirst() } },
    },
    target: "es2023",
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    // One page for all files of a worker: making it takes longer than most of them.
    isolate: false,
    setupFiles: ["src/testing/setup.ts"],
    testTimeout: 60_000,
    unstubGlobals: true,
  },
});
