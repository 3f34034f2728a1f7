// Compiles the contracts beside this file into src/cambist_evm/testing/artifacts, where they are committed, so that
// tests need no compiler. After a change:
//
//     npm install --no-save --prefix /somewhere solc@0.8.37
//     NODE_PATH=/somewhere/node_modules node plugins/evm/tests/contracts/compile.cjs
const fs = require("fs");
const path = require("path");
const solc = require("solc");

const target = path.join(__dirname, "../../src/cambist_evm/testing/artifacts");
const names = fs.readdirSync(__dirname).filter((name) => name.endsWith(".sol"));
const sources = Object.fromEntries(
  names.map((name) => [name, { content: fs.readFileSync(path.join(__dirname, name), "utf8") }]),
);
const settings = {
  evmVersion: "paris",
  optimizer: { enabled: true, runs: 200 },
  metadata: { appendCBOR: false, bytecodeHash: "none" },
  outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
};
const output = JSON.parse(solc.compile(JSON.stringify({ language: "Solidity", sources, settings })));

for (const error of output.errors ?? []) {
  if (error.severity === "error") {
    console.error(error.formattedMessage);
    process.exitCode = 1;
  }
}
for (const [sourceName, contracts] of Object.entries(output.contracts ?? {})) {
  for (const [contractName, { abi, evm }] of Object.entries(contracts)) {
    if (evm.bytecode.object) {
      const artifact = { contractName, sourceName, abi, bytecode: "0x" + evm.bytecode.object };
      fs.writeFileSync(path.join(target, contractName + ".json"), JSON.stringify(artifact, null, 1) + "\n");
    }
  }
}
