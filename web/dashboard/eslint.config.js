import hooks from "eslint-plugin-react-hooks";
import { defineConfig, globalIgnores } from "eslint/config";
import typescript from "typescript-eslint";

// What the pages' Content-Security-Policy would block: style tags that these insert.
const BLOCKED = ["AppShell", "Grid", "SimpleGrid", "NumberFormatter"];

// Texts are in src/i18n, in all languages; what is no language's, such as the name of the product, may stand anywhere.
const WORDS = "/[A-Za-z]{2}/";
const NO_WORDS = "/^\\s*(Cambist|https:..|pay_…)\\s*$/";
const SAID =
  "/^(title|label|description|placeholder|lead|act|dismiss|empty|alt|error|prefix|suffix|aria-label|caption)$/";
const LITERAL = "Texts are in src/i18n, in all languages: t(...).";

const SYNTAX = [
  {
    selector: "JSXAttribute[name.name=/^(hiddenFrom|visibleFrom)$/]",
    message: "It inserts style tags, which the policy blocks.",
  },
  {
    selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
    message: "What merchants and customers wrote is never HTML.",
  },
  {
    selector: "JSXAttribute[name.name=/^([mp][lr]|left|right)$/]",
    message: "Say start and end: Arabic is read from the right (ms, me, ps, pe).",
  },
  { selector: `JSXText[value=${WORDS}]:not([value=${NO_WORDS}])`, message: LITERAL },
  {
    selector: `JSXAttribute[name.name=${SAID}] > Literal[value=${WORDS}]:not([value=${NO_WORDS}])`,
    message: LITERAL,
  },
  {
    selector: `JSXAttribute[name.name=${SAID}] > JSXExpressionContainer > TemplateLiteral > TemplateElement[value.raw=${WORDS}]`,
    message: LITERAL,
  },
];
const FORMATS = {
  selector: "NewExpression[callee.object.name='Intl']",
  message: "ui/format.ts writes numbers and times as the language does.",
};

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
      "no-restricted-syntax": ["error", ...SYNTAX, FORMATS],
    },
  },
  {
    files: ["src/ui/format.ts", "src/i18n/*.ts", "src/testing/**", "**/*.test.{ts,tsx}"],
    rules: { "no-restricted-syntax": ["error", ...SYNTAX.filter(({ message }) => message !== LITERAL)] },
  },
  { files: ["**/*.js", "**/*.mjs"], extends: [typescript.configs.disableTypeChecked] },
);
