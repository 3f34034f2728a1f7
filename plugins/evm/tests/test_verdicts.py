"""What each client says to a transaction it does not take, in its own words, and what that means."""

from __future__ import annotations

import time

import pytest

from cambist_evm.broadcasts import verdict_on
from cambist_evm.gas import is_revert, reason_of
from cambist_evm.wire import RpcFailure

SAID = {
    "accepted": [
        "already known",
        "ALREADY_EXISTS: already known",
        "known transaction: 5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060",
        "Known transaction",
        "AlreadyKnown",
        "transaction already imported",
        "Transaction with the same hash was already imported.",
        "INTERNAL_ERROR: existing tx with same hash",
        "tx already in mempool",
        "Transaction already in the pool",
    ],
    "sequence_used": [
        "nonce too low",
        "nonce too low: next nonce 5, tx nonce 4",
        "nonce too low: address 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266, tx: 1 state: 2",
        "Transaction nonce is too low. Try incrementing the nonce.",
        "Transaction nonce is below sender account nonce",
        "OldNonce, Current nonce: 5, nonce of rejected tx: 4.",
        "Nonce too low",
    ],
    "underpriced": [
        "replacement transaction underpriced",
        "replacement transaction underpriced: new tx gas fee cap 7 < 7 queued + 10% replacement penalty",
        "transaction underpriced",
        "transaction underpriced: gas tip cap 1, minimum needed 25000000000",
        "transaction gas price below minimum: gas tip cap 1000000, minimum needed 50000000",
        "max fee per gas less than block base fee",
        "max fee per gas less than block base fee: address 0xf39F, maxFeePerGas: 1, baseFee: 20000000",
        "max fee per gas less than block base fee (supplied gas 21000)",
        "INTERNAL_ERROR: could not replace existing tx",
        "fee too low",
        "FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 1, BaseFee: 7",
        "ReplacementNotAllowed",
        "Gas price below configured minimum gas price",
        "gas price below current base fee",
        "Transaction gas price is too low. It does not satisfy your node's minimal gas price",
    ],
    "unfunded": [
        "insufficient funds for gas * price + value",
        "insufficient funds for gas * price + value: balance 1, tx cost 22000, overshot 21999",
        "insufficient funds for gas * price + value: balance 9, queued cost 8, tx cost 4, overshot 3",
        "insufficient funds for l1Cost + l2Cost",
        "InsufficientFunds, Account balance: 1, cumulative cost: 2",
        "Insufficient funds for gas * price + value",
        "Upfront cost exceeds account balance",
        "sender doesn't have enough funds to send tx. The upfront cost is: 5 and the sender's balance is: 4.",
    ],
    "unknown": [
        "txpool is full",
        "the method eth_sendRawTransaction does not exist/is not available",
        "method not supported",
        "daily request count exceeded, request rate limited",
        "Too Many Requests",
        "nonce too high: address 0xf39F, tx: 9 state: 2",
        "NonceGap, Future nonce. Expected nonce: 4",
        "Transaction nonce is too distant from current sender nonce",
        "An invalid transaction with a lower nonce exists",
        "in-flight transaction limit reached for delegated accounts",
        "gapped-nonce tx from delegated accounts",
        "context deadline exceeded",
        "internal error",
        "request timed out",
        "unknown transaction",
        "",
    ],
    "rejected": [
        "intrinsic gas too low",
        "intrinsic gas too low: have 20000, want 21000",
        "intrinsic gas too low: gas 100, minimum needed 21000",
        "exceeds block gas limit",
        "exceeds block gas limit: 40000000 > 30000000",
        "transaction gas limit too high (cap: 16777216, tx: 20000000)",
        "GasLimitExceeded, Gas limit: 30000000, gas limit of rejected tx: 40000000",
        "invalid sender",
        "invalid chain id for signer: have 5 want 1",
        "invalid chain id",
        "transaction type not supported",
        "tx type not supported",
        "max priority fee per gas higher than max fee per gas: maxPriorityFeePerGas: 5, maxFeePerGas: 1",
        "only replay-protected (EIP-155) transactions allowed over RPC",
        "tx fee (1.50 ether) exceeds the configured cap (1.00 ether)",
        "rlp: value size exceeds available input length",
        "sender not an eoa",
        "oversized data: transaction size 200000, limit 131072",
    ],
}


@pytest.mark.parametrize("state, text", [(state, text) for state, texts in SAID.items() for text in texts])
def test_each_clients_words_mean_what_they_mean(state: str, text: str) -> None:
    """What nobody can be sure of is unknown: never is a transaction given up that may be out."""
    verdict = verdict_on(RpcFailure(code=-32000, message=text))
    assert (verdict.state, verdict.reason) == (state, text or "error -32000")


def test_some_clients_put_the_words_beside_the_message() -> None:
    failure = RpcFailure(code=-32010, message="Transaction error.", data="Transaction nonce is too low")
    assert verdict_on(failure).state == "sequence_used"


def test_a_reason_is_short() -> None:
    assert len(verdict_on(RpcFailure(message="nonce too low " * 1000)).reason) == 200


ERROR = "0x08c379a0" + f"{32:064x}{4:064x}" + b"nope".hex().ljust(64, "0")


@pytest.mark.parametrize(
    "failure, reason",
    [
        (RpcFailure(3, "execution reverted: nope", ERROR), "nope"),
        (RpcFailure(3, "execution reverted", ERROR), "nope"),
        (RpcFailure(-32015, "VM execution error.", "Reverted " + ERROR), "nope"),
        (RpcFailure(3, "execution reverted: nope", None), "nope"),
        (RpcFailure(3, "execution reverted", "0x4e487b71" + f"{0x11:064x}"), "panic 0x11"),
        (RpcFailure(3, "execution reverted", "0xe450d38c" + "00" * 96), "error 0xe450d38c"),
        (RpcFailure(3, "execution reverted", "0x"), "execution reverted"),
        (RpcFailure(-32000, "gas required exceeds allowance (3000000)"), "gas required exceeds allowance (3000000)"),
        (RpcFailure(-32000, "invalid opcode: INVALID"), "invalid opcode: INVALID"),
        (RpcFailure(3, "execution reverted", "0x08c379a0" + "zz"), "execution reverted"),
        (RpcFailure(3, "execution reverted: a\nb\x00c" + "d" * 500), r"a\u000ab\u0000c" + "d" * 105),
    ],
)
def test_a_revert_tells_why(failure: RpcFailure, reason: str) -> None:
    """In whatever form the client passes it on; printable and short, since a stranger's contract wrote it."""
    assert is_revert(failure)
    assert reason_of(failure) == reason


@pytest.mark.parametrize(
    "text",
    [
        "insufficient funds for gas * price + value: address 0x11 have 0 want 1",
        "insufficient funds for transfer",
        "header not found",
        "rate limit exceeded",
        "missing trie node",
    ],
)
def test_what_was_never_executed_is_no_revert(text: str) -> None:
    assert not is_revert(RpcFailure(-32000, text))


def test_a_node_that_says_a_lot_is_read_as_fast_as_any() -> None:
    said = "nonce too " * 20_000
    began = time.thread_time()
    assert verdict_on(RpcFailure(message=said, data=said)).state == "unknown"
    assert time.thread_time() - began < 1
