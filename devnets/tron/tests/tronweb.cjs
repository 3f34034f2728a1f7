// Does on a node, through tronweb, what a wallet does, and answers with what it was told. Waits for no block.
const { TronWeb } = require("tronweb");

const [, , url, privateKey, to, token] = process.argv;
const tron = new TronWeb({ fullHost: url, privateKey });
const own = tron.defaultAddress.base58;
const send = async (built) => {
  const answer = await tron.trx.sendRawTransaction(await tron.trx.sign(built));
  return answer.result === true ? answer.txid : answer.code;
};

async function main() {
  const contract = await tron.contract().at(token);
  const parameters = [{ type: "address", value: to }, { type: "uint256", value: 7 }];
  return {
    symbol: await contract.symbol().call(),
    balance: (await contract.balanceOf(own).call()).toString(),
    paid: await send(await tron.transactionBuilder.sendTrx(to, 1234567)),
    transferred: await contract.transfer(to, 5).send({ feeLimit: 100000000 }),
    estimate: await tron.transactionBuilder.estimateEnergy(token, "transfer(address,uint256)", {}, parameters, own),
    staked: await send(await tron.transactionBuilder.freezeBalanceV2(10000000, "ENERGY", own)),
    refused: await tron.transactionBuilder.sendTrx(to, 10 ** 15).then(send),
  };
}

main().then((told) => process.stdout.write(JSON.stringify(told)), (error) => { console.error(error); process.exit(1); });
