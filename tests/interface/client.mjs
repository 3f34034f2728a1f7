// Compile what uses the API's types: `node client.mjs FOLDER`. The folder has merchant, dashboard and operator, each as
// types or as the description (`.json`) to make them of. Prints what does not compile.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

const [folder] = process.argv.slice(2);
const names = ["merchant", "dashboard", "operator"];
for (const name of names.filter((name) => !existsSync(join(folder, `${name}.ts`)))) {
  const { default: openapiTS, astToString } = await import("openapi-typescript");
  const description = JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
  const types = await openapiTS(description, { defaultNonNullable: false, silent: true });
  writeFileSync(join(folder, `${name}.ts`), astToString(types));
}
const here = import.meta.dirname;
const program = ts.createProgram(
  names.map((name) => join(here, `${name}.ts`)),
  {
    strict: true, noEmit: true, noUnusedLocals: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true,
    skipLibCheck: true, types: [], lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler,
    paths: { "described/*": [join(folder, "*")] },
  },
);
const wrong = ts.getPreEmitDiagnostics(program);
for (const one of wrong) {
  const line = one.file ? one.file.getLineAndCharacterOfPosition(one.start).line + 1 : 0;
  console.log(`${one.file?.fileName}:${line}: ${ts.flattenDiagnosticMessageText(one.messageText, "\n")}`);
}
if (wrong.length === 0) console.log(`${names.length} descriptions compiled`);
