import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The files are served below one path, under names that change with their content, and nothing is inlined: the pages'
// policy allows no inline scripts.
export default defineConfig({
  base: "/dashboard-assets/",
  plugins: [react()],
  build: {
    outDir: "../src/cambist_web/dashboard/built",
    assetsDir: "",
    assetsInlineLimit: 0,
    emptyOutDir: true,
    // What imports what: a test counts what is loaded first.
    manifest: "manifest.json",
    modulePreload: { polyfill: false },
    rolldownOptions: { input: { dashboard: "dashboard.html", operator: "operator.html" } },
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
