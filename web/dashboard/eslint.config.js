import hooks from "eslint-plugin-react-hooks";
import { defineConfig, globalIgnores } from "eslint/config";
import typescript from "typescript-eslint";

// What the pages' Content-Security-Policy would block: style tags that these insert.
const BLOCKED = ["AppShell", "Grid", "SimpleGrid", "NumberFormatter"];

export default defineConfig(
  globalIgnores(["src/api/generated/", "node_modules/"]),
  typescript.configs.strictTypeChecked,
  typescript.configs.stylisticTypeChecked,
  hooks.configs.flat["recommended-latest"],
  {
    languageOptions: {
      parserOptions: { projectService: { allowDefaultProject: ["eslint.config.js", "scripts/*.mjs"] } },
    },
    rules: {
      // Numbers and booleans in a text are what they look like.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // Handlers of events may be asynchronous: what they throw is shown by whoever they call.
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
      // The router's redirects and not-found are thrown, and are no errors.
      "@typescript-eslint/only-throw-error": [
        "error",
        { allow: [{ from: "package", package: "@tanstack/router-core", name: ["Redirect", "NotFoundError"] }] },
      ],
      "max-lines": ["error", 300],
      "no-restricted-imports": [
        "error",
        {
          paths: [
            { name: "@mantine/core", importNames: BLOCKED, message: "It inserts style tags, which the policy blocks." },
          ],
        },
      ],
      "no-restricted-syntax": [
        "error",
        {
          selector: "JSXAttribute[name.name=/^(hiddenFrom|visibleFrom)$/]",
          message: "It inserts style tags, which the policy blocks.",
        },
        {
          selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
          message: "What merchants and customers wrote is never HTML.",
        },
      ],
    },
  },
  { files: ["**/*.js", "**/*.mjs"], extends: [typescript.configs.disableTypeChecked] },
);
