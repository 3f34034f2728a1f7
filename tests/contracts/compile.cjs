// Compiles the contracts beside this file into core/src/cambist/testing/artifacts, each plugin's own beside their
// sources, and the local 1inch's into its package, where all are committed: nobody else needs a compiler. After a change:
//
//     npm install --no-save --prefix /somewhere solc@0.8.37
//     NODE_PATH=/somewhere/node_modules node tests/contracts/compile.cjs
const fs = require("fs");
const path = require("path");
const solc = require("solc");

const workspace = path.join(__dirname, "../..");
const evmContracts = path.join(workspace, "plugins/evm/src/cambist_evm/contracts");
const oneInch = path.join(workspace, "devnets/oneinch");
const folders = [
  // The tests' contracts run on the oldest chains that tests start; the EVM plugin's own need EIP-7702 anyway.
  { from: __dirname, to: path.join(workspace, "core/src/cambist/testing/artifacts"), evmVersion: "paris" },
  { from: evmContracts, to: evmContracts, evmVersion: "prague" },
  {
    from: path.join(oneInch, "contracts"),
    to: path.join(oneInch, "src/cambist_oneinch_node/artifacts"),
    evmVersion: "paris",
  },
];

function compile({ from, to, evmVersion }) {
  const interfaces = {};
  for (const { sourceName, contractName, abi, bytecode } of contractsOf("Solidity", ".sol", from, evmVersion)) {
    if (bytecode) {
      write(to, { contractName, sourceName, abi, bytecode });
    } else {
      interfaces[contractName] = abi;
    }
  }
  // A contract in Yul has no ABI of its own; the Solidity interface of its name tells it.
  for (const { sourceName, contractName, bytecode } of contractsOf("Yul", ".yul", from, evmVersion)) {
    write(to, { contractName, sourceName, abi: interfaces[contractName], bytecode });
  }
}

function contractsOf(language, ending, from, evmVersion) {
  const names = fs.readdirSync(from).filter((name) => name.endsWith(ending));
  // The compiler takes one Yul source at a time.
  const groups = language === "Yul" ? names.map((name) => [name]) : names.length ? [names] : [];
  return groups.flatMap((group) => {
    const sources = Object.fromEntries(
      group.map((name) => [name, { content: fs.readFileSync(path.join(from, name), "utf8") }]),
    );
    const settings = {
      evmVersion,
      optimizer: { enabled: true, runs: 200 },
      outputSelection: { "*": { "*": language === "Yul" ? ["evm.bytecode.object"] : ["abi", "evm.bytecode.object"] } },
      ...(language === "Yul" ? {} : { metadata: { appendCBOR: false, bytecodeHash: "none" } }),
    };
    const output = JSON.parse(solc.compile(JSON.stringify({ language, sources, settings })));
    for (const error of output.errors ?? []) {
      if (error.severity === "error") {
        console.error(error.formattedMessage);
        process.exitCode = 1;
      }
    }
    return Object.entries(output.contracts ?? {}).flatMap(([sourceName, contracts]) =>
      Object.entries(contracts).map(([contractName, { abi, evm }]) => ({
        sourceName, contractName, abi, bytecode: evm.bytecode.object,
      })),
    );
  });
}

function write(to, { contractName, sourceName, abi, bytecode }) {
  const artifact = { contractName, sourceName, abi, bytecode: "0x" + bytecode };
  fs.writeFileSync(path.join(to, contractName + ".json"), JSON.stringify(artifact, null, 1) + "\n");
}

folders.forEach(compile);
