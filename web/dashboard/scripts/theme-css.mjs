// Writes the theme's variables as static CSS: Mantine would insert them as a style tag, which the policy blocks.
import { writeFileSync } from "node:fs";
import { convertCssVariables, defaultCssVariablesResolver, DEFAULT_THEME, mergeMantineTheme } from "@mantine/core";
import { createServer } from "vite";

const server = await createServer({ server: { middlewareMode: true }, appType: "custom", logLevel: "error" });
const { theme } = await server.ssrLoadModule("/src/ui/theme.ts");
const variables = defaultCssVariablesResolver(mergeMantineTheme(DEFAULT_THEME, theme));
writeFileSync(
  new URL("../src/ui/theme-variables.css", import.meta.url),
  `${convertCssVariables(variables, ":root")}\n`,
);
await server.close();
