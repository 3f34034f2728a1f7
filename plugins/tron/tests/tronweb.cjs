// Answers, for each case on standard input, what tronweb makes of it. Asks no node.
const { TronWeb, utils } = require("tronweb");
const { HDNodeWallet } = require("ethers");

const ENERGY = "ENERGY";
const hex = (address) => TronWeb.address.toHex(address);

const contracts = {
  transfer: (one) => ["TransferContract", { owner_address: hex(one.owner), to_address: hex(one.target), amount: one.amount }],
  call: (one) => ["TriggerSmartContract", {
    owner_address: hex(one.owner),
    contract_address: hex(one.contract),
    data: "a9059cbb" + utils.abi.encodeParams(["address", "uint256"], [one.target, one.amount]).slice(2),
  }],
  stake: (one) => ["FreezeBalanceV2Contract", { owner_address: hex(one.owner), frozen_balance: one.amount, resource: ENERGY }],
  unstake: (one) => ["UnfreezeBalanceV2Contract", { owner_address: hex(one.owner), unfreeze_balance: one.amount, resource: ENERGY }],
  withdraw: (one) => ["WithdrawExpireUnfreezeContract", { owner_address: hex(one.owner) }],
  lend: (one) => ["DelegateResourceContract", {
    owner_address: hex(one.owner), receiver_address: hex(one.target), balance: one.amount, resource: ENERGY,
  }],
  reclaim: (one) => ["UnDelegateResourceContract", {
    owner_address: hex(one.owner), receiver_address: hex(one.target), balance: one.amount, resource: ENERGY,
  }],
};

function answer(one) {
  const [type, value] = contracts[one.kind](one);
  const raw_data = {
    contract: [{ parameter: { value, type_url: "type.googleapis.com/protocol." + type }, type }],
    ref_block_bytes: one.ref_block_bytes,
    ref_block_hash: one.ref_block_hash,
    expiration: one.expiration_ms,
    timestamp: one.timestamp_ms,
  };
  if (one.fee_limit) raw_data.fee_limit = one.fee_limit;
  const pb = utils.transaction.txJsonToPb({ raw_data });
  const txid = utils.transaction.txPbToTxID(pb).replace(/^0x/, "");
  const child = HDNodeWallet.fromExtendedKey(one.xpub).derivePath(`${one.change}/${one.index}`);
  const point = utils.code.hexStr2byteArray(child.publicKey.slice(2));
  const full = utils.ethersUtils.SigningKey.computePublicKey(new Uint8Array(point), false).slice(4);
  return {
    txid,
    payload: utils.transaction.txPbToRawDataHex(pb).toLowerCase().replace(/^0x/, ""),
    address: TronWeb.address.fromPrivateKey(one.key),
    derived: utils.crypto.getBase58CheckAddress(utils.crypto.computeAddress(utils.code.hexStr2byteArray(full))),
    signature: utils.crypto.ECKeySign(utils.code.hexStr2byteArray(txid), utils.code.hexStr2byteArray(one.key)),
    signer: utils.address.fromHex(utils.crypto.ecRecover(one.txid, one.signature)),
  };
}

let text = "";
process.stdin.on("data", (chunk) => { text += chunk; });
process.stdin.on("end", () => process.stdout.write(JSON.stringify(JSON.parse(text).map(answer))));
