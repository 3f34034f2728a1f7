// Compiles the contracts beside this file into src/cambist_evm/testing/artifacts, and the plugin's own in
// src/cambist_evm/contracts beside their sources, where both are committed: nobody else needs a compiler. After a change:
//
//     npm install --no-save --prefix /somewhere solc@0.8.37
//     NODE_PATH=/somewhere/node_modules node plugins/evm/tests/contracts/compile.cjs
const fs = require("fs");
const path = require("path");
const solc = require("solc");

const plugin = path.join(__dirname, "../../src/cambist_evm");
const folders = [
  // The tests' contracts run on the oldest chains that tests start; the plugin's own need EIP-7702 anyway.
  { from: __dirname, to: path.join(plugin, "testing/artifacts"), evmVersion: "paris" },
  { from: path.join(plugin, "contracts"), to: path.join(plugin, "contracts"), evmVersion: "prague" },
];

function compile({ from, to, evmVersion }) {
  const names = fs.readdirSync(from).filter((name) => name.endsWith(".sol"));
  const sources = Object.fromEntries(
    names.map((name) => [name, { content: fs.readFileSync(path.join(from, name), "utf8") }]),
  );
  const settings = {
    evmVersion,
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
        fs.writeFileSync(path.join(to, contractName + ".json"), JSON.stringify(artifact, null, 1) + "\n");
      }
    }
  }
}

folders.forEach(compile);
