"""Blocks and receipts that do not fit together, and logs that no real node should send."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cambist.plugin import InconsistentChainError
from cambist_chainkit.answers import decode_deep
from cambist_chainkit.spans import check_links
from cambist_evm.bloom import bloom_of
from cambist_evm.decode import FEE_LOGS, TRANSFER_TOPIC, check_blooms, check_header, check_receipts, transfers_of
from cambist_evm.quantities import quantity
from cambist_evm.traces import Movement, from_call_frames, from_flat_traces, internal_transfers, walk_frames
from cambist_evm.wire import (
    Answer,
    CallFrame,
    FlatAction,
    FlatTrace,
    RpcBlock,
    RpcHeader,
    RpcLog,
    RpcReceipt,
    RpcTransaction,
    TracedTransaction,
)

OURS = "0x" + "11" * 20
OTHER = "0x" + "22" * 20
TOKEN = "0x" + "33" * 20
NATIVE_LOGS = "0x" + "f" * 39 + "e"
WATCH = {bytes.fromhex(OURS[2:])}
CONTRACTS = {TOKEN: TOKEN}


def word(number: int) -> str:
    return f"0x{number:064x}"


def padded(address: str) -> str:
    return "0x" + "0" * 24 + address[2:]


def log(index: int, **changes: Any) -> RpcLog:
    fields = {"address": TOKEN, "topics": [TRANSFER_TOPIC, padded(OTHER), padded(OURS)], "data": word(5)}
    return RpcLog(**{**fields, "log_index": hex(index), "transaction_hash": "", **changes})


def receipt(number: int, *logs: RpcLog, **changes: Any) -> RpcReceipt:
    own = [replace(one, transaction_hash=one.transaction_hash or word(number)) for one in logs]
    fields = {"transaction_hash": word(number), "block_hash": word(9), "logs": own, "status": "0x1"}
    return RpcReceipt(**{**fields, **changes})


def block(*numbers: int, **changes: Any) -> RpcBlock:
    transactions = [RpcTransaction(word(number), OTHER, "0x0", OTHER) for number in numbers]
    fields = {
        "number": "0x7",
        "hash": word(9),
        "parent_hash": word(8),
        "timestamp": "0x1",
        "transactions": transactions,
    }
    return RpcBlock(**{**fields, **changes})


def test_a_sound_block_passes() -> None:
    """Log indexes may count through the block or through the receipt."""
    check_receipts(block(1, 2, 3), [receipt(1, log(0), log(1)), receipt(2), receipt(3, log(2))])
    check_receipts(block(1, 2), [receipt(1, log(0), log(1)), receipt(2, log(0), log(1), log(2))])
    check_receipts(block(), [])


@pytest.mark.parametrize(
    "numbers, receipts",
    [
        ([1, 2], [receipt(1)]),
        ([1], []),
        ([], [receipt(1)]),
        ([1, 2], [receipt(2), receipt(1)]),
        ([1], [receipt(1, block_hash=word(10))]),
        ([1], [receipt(1, log(0), log(2))]),
        ([1], [receipt(1, log(0), log(0), log(2))]),
        ([1], [receipt(1, log(0), log(2), log(1), log(3))]),
        ([1, 2], [receipt(1, log(0)), receipt(2, log(1, transaction_hash=word(1)))]),
        ([1, 1], [receipt(1), receipt(1)]),
        ([1, 2], [receipt(1, log(0)), receipt(2, log(2))]),
        ([1, 2, 3], [receipt(1, log(0)), receipt(2, log(1)), receipt(3, log(0))]),
        ([1, 2], [receipt(1, log(1)), receipt(2, log(2))]),
        ([1], [receipt(1, log(0, log_index=""))]),
        ([1], [receipt(1, logs_bloom="0x" + "01" * 256)]),
    ],
)
def test_receipts_that_do_not_fit_are_an_outage(numbers: list[int], receipts: list[RpcReceipt]) -> None:
    """Short, empty, in another order, of another block, with logs missing, doubled, swapped, copied or hidden."""
    with pytest.raises(InconsistentChainError):
        check_receipts(block(*numbers), receipts)


@pytest.mark.parametrize(
    "header",
    [
        RpcHeader("0x8", word(9), word(8), "0x1"),
        RpcHeader("", word(9), word(8), "0x1"),
        RpcHeader("0x7", word(9), word(8), "now"),
        RpcHeader("0x7", "0x", word(8), "0x1"),
    ],
)
def test_a_header_of_another_height_or_without_hash_is_an_outage(header: RpcHeader) -> None:
    """Block 7 was asked for."""
    with pytest.raises(InconsistentChainError):
        check_header(header, 7)


def test_blocks_of_a_span_must_be_linked() -> None:
    """A span that straddles a reorg is not used."""
    first = check_header(RpcHeader("0x7", word(9), word(8), "0x1"), 7)
    check_links([first, check_header(RpcHeader("0x8", word(10), word(9), "0x1"), 8)])
    with pytest.raises(InconsistentChainError):
        check_links([first, check_header(RpcHeader("0x8", word(10), word(11), "0x1"), 8)])


@pytest.mark.parametrize(
    "ignored",
    [
        log(0, address=NATIVE_LOGS),
        log(0, address=OTHER),
        log(0, topics=[TRANSFER_TOPIC, padded(OTHER), padded(OURS), word(1)]),
        log(0, topics=[TRANSFER_TOPIC]),
        log(0, topics=[]),
        log(0, topics=[word(1), padded(OTHER), padded(OURS)]),
        log(0, topics=[TRANSFER_TOPIC, padded(OURS), padded(OURS)]),
        log(0, topics=[TRANSFER_TOPIC, padded(OTHER), "0x" + "01" * 12 + OURS[2:]]),
        log(0, data=word(0)),
        log(0, data="0x"),
    ],
)
def test_logs_that_are_no_deposit_are_ignored(ignored: RpcLog) -> None:
    """EIP-7708's native logs, other contracts, ERC-721, other events, self-transfers, dirty addresses, nothing."""
    assert transfers_of(block(1), [receipt(1, ignored)], CONTRACTS, WATCH) == []


def test_a_native_transfer_with_its_eip_7708_log_is_counted_once() -> None:
    """The log of value says what the transaction says."""
    paid = block(1, transactions=[RpcTransaction(word(1), OTHER, "0x5", OURS)])
    transfers = transfers_of(paid, [receipt(1, log(0, address=NATIVE_LOGS))], CONTRACTS, WATCH)
    assert [(one.position, one.amount) for one in transfers] == [("native", 5)]


def test_a_log_that_is_marked_as_removed_is_an_outage() -> None:
    """It belongs to a block that is no longer there."""
    with pytest.raises(InconsistentChainError, match="removed"):
        transfers_of(block(1), [receipt(1, log(0, removed=True))], CONTRACTS, WATCH)


@pytest.mark.parametrize(
    "broken", [log(0, data="0x" + "zz" * 32), log(0, topics=[TRANSFER_TOPIC, "", "0x" + "zz" * 32])]
)
def test_broken_hex_is_an_outage(broken: RpcLog) -> None:
    """Not a crash, and not nothing."""
    with pytest.raises(InconsistentChainError):
        transfers_of(block(1), [receipt(1, broken)], CONTRACTS, WATCH)


def test_a_receipt_without_status_decides_nothing() -> None:
    """Neither a success nor a failure."""
    with pytest.raises(InconsistentChainError, match="no status"):
        transfers_of(block(1), [receipt(1, log(0), status=None)], CONTRACTS, WATCH)


def test_transfers_stand_in_the_order_of_the_chain() -> None:
    """By transaction, and native before logs."""
    paid = block(1, transactions=[RpcTransaction(word(n), OTHER, "0x5", OURS) for n in (1, 2)])
    transfers = transfers_of(paid, [receipt(1, log(0)), receipt(2, log(1), log(2))], CONTRACTS, WATCH)
    assert [(one.tx_id[-1], one.position) for one in transfers] == [
        ("1", "native"), ("1", "log:0"), ("2", "native"), ("2", "log:0"), ("2", "log:1"),
    ]  # fmt: skip


MALFORMED = ["", "0x", "10", "-0x5", "0x_1", "0x\uff11", "0x 1", "0x1" + "0" * 64, "1" * 5000, "0x" + "1" * 5000]


@pytest.mark.parametrize("text", MALFORMED)
def test_a_number_has_one_spelling(text: str) -> None:
    """Python would read a sign, an underscore, other digits and a missing prefix, or stumble."""
    with pytest.raises(InconsistentChainError):
        quantity(text)
    for paid in (
        block(1, transactions=[RpcTransaction(word(1), OTHER, text, OURS)]),
        block(1, transactions=[RpcTransaction(word(1), OURS, "0x0", OTHER, "0x7e", text)]),
    ):
        with pytest.raises(InconsistentChainError):
            transfers_of(paid, [receipt(1)], CONTRACTS, WATCH)
    with pytest.raises(InconsistentChainError):
        check_header(RpcHeader(text, word(9), word(8), "0x1"), 7)
    with pytest.raises(InconsistentChainError):
        check_header(RpcHeader("0x7", word(9), word(8), text), 7)


@pytest.mark.parametrize("address", [OURS[:-1], OURS[:-2], OURS + "11", OURS[:-2] + " 1", OURS[:-1] + "g", "0x"])
def test_an_address_has_twenty_bytes(address: str) -> None:
    """A shorter one is nobody's, and would be a payment that is not seen."""
    with pytest.raises(InconsistentChainError):
        transfers_of(
            block(1, transactions=[RpcTransaction(word(1), OTHER, "0x5", address)]), [receipt(1)], CONTRACTS, WATCH
        )
    wrong = log(0, topics=[TRANSFER_TOPIC, padded(OTHER), padded(address)])
    with pytest.raises(InconsistentChainError):
        transfers_of(block(1), [receipt(1, wrong)], CONTRACTS, WATCH)
    overlong = log(0, topics=[TRANSFER_TOPIC, padded(OTHER) + "11", padded(OURS)])
    with pytest.raises(InconsistentChainError):
        transfers_of(block(1), [receipt(1, overlong)], CONTRACTS, WATCH)


def deposit(sender: str, to: str | None, value: str, mint: str | None) -> RpcBlock:
    return block(1, transactions=[RpcTransaction(word(1), sender, value, to, "0x7e", mint)])


@pytest.mark.parametrize(
    "paid, status, expected",
    [
        (deposit(OURS, OURS, "0x5", "0x5"), "0x1", [("mint", 5)]),
        (deposit(OURS, OTHER, "0x5", "0x5"), "0x1", [("mint", 5), ("native", 5)]),
        (deposit(OURS, OTHER, "0x5", "0x5"), "0x0", [("mint", 5)]),
        (deposit(OTHER, OURS, "0x5", "0x5"), "0x1", [("native", 5)]),
        (deposit(OTHER, OURS, "0x5", "0x5"), "0x0", []),
        (deposit(OURS, None, "0x0", "0x7"), "0x1", [("mint", 7)]),
        (deposit(OURS, OURS, "0x0", "0x0"), "0x1", []),
        (deposit(OURS, OURS, "0x5", None), "0x1", []),
    ],
)
def test_a_deposit_into_an_op_chain_creates_coin_for_its_sender(
    paid: RpcBlock, status: str, expected: list[tuple[str, int]]
) -> None:
    """Whatever becomes of its call; what it then sends on is a transfer like any other."""
    found = transfers_of(paid, [receipt(1, status=status)], CONTRACTS, WATCH)
    assert [(one.position, one.amount) for one in found] == expected
    assert {str(one.sender if one.recipient.lower() == OTHER else one.recipient).lower() for one in found} <= {OURS}


def test_what_ours_send_and_fails_is_neither_told_nor_a_contradiction() -> None:
    """On networks that log what a failed transaction costs, one of ours must not stop the chain; what pays us must."""

    def sent(sender: str, to: str) -> RpcBlock:
        return block(1, transactions=[RpcTransaction(word(1), sender, "0x5", to)])

    failed = [receipt(1, log(0, address=NATIVE_LOGS), status="0x0")]
    assert transfers_of(sent(OURS, OTHER), failed, {}, WATCH) == []
    with pytest.raises(InconsistentChainError, match="says failed, and has logs"):
        transfers_of(sent(OTHER, OURS), failed, {}, WATCH)


@pytest.mark.parametrize("kind", ["0x2", "0x7E", "0x07e", "", None])
def test_coin_is_created_by_deposits_alone(kind: str | None) -> None:
    """Nobody else has the field, so one of the two is not what the chain says: to drop either would drop a deposit."""
    paid = block(1, transactions=[RpcTransaction(word(1), OURS, "0x0", OTHER, kind, "0x5")])
    with pytest.raises(InconsistentChainError, match="no deposit"):
        transfers_of(paid, [receipt(1)], CONTRACTS, WATCH)


PAID = RpcTransaction(word(1), OTHER, "0x5", OURS)
MINTED = RpcTransaction(word(1), OURS, "0x0", OURS, "0x7e", "0x5")
CREATED = RpcTransaction(word(1), OTHER, "0x5", None)


@pytest.mark.parametrize(
    "tx, told",
    [
        (PAID, {"sender": OTHER, "to": TOKEN}),
        (PAID, {"sender": TOKEN, "to": OURS}),
        (PAID, {"to": None}),
        (PAID, {"sender": None}),
        (MINTED, {"sender": OTHER, "to": OURS}),
        (CREATED, {"sender": OTHER, "to": OURS}),
    ],
)
def test_a_transaction_with_value_has_the_ends_of_its_receipt(tx: RpcTransaction, told: dict[str, Any]) -> None:
    """Else who changes the block alone pays another, takes a payment away, or lets one stay with its sender."""
    with pytest.raises(InconsistentChainError, match="different ends"):
        check_receipts(block(1, transactions=[tx]), [receipt(1, **told)])


@pytest.mark.parametrize(
    "tx, told",
    [
        (PAID, {"sender": OTHER, "to": OURS}),
        (PAID, {}),
        (PAID, {"to": OURS}),
        (replace(PAID, to="0x" + "ab" * 20), {"sender": OTHER, "to": "0x" + "aB" * 20}),
        (CREATED, {"sender": OTHER, "to": None}),
        (CREATED, {"sender": OTHER}),
        (replace(PAID, value="0x0"), {"sender": TOKEN, "to": None}),
    ],
)
def test_nodes_tell_of_ends_in_their_own_way(tx: RpcTransaction, told: dict[str, Any]) -> None:
    """In mixed case or not at all, and a creation has no recipient. Without value, the ends move no coin."""
    check_receipts(block(1, transactions=[tx]), [receipt(1, **told)])


def test_a_failed_transaction_has_no_logs() -> None:
    """One that has some did not fail: neither its payments nor what it paid are dropped for the word of its status."""
    for paid, logs, inside in (
        (block(1), [log(0)], []),
        (block(1, transactions=[PAID]), [log(0, address=OTHER)], []),
        (block(1), [log(0, address=OTHER)], [[Movement(OTHER, OURS, 1)]]),
    ):
        failed = [receipt(1, *logs, status="0x0")]
        with pytest.raises(InconsistentChainError, match="says failed"):
            transfers_of(paid, failed, CONTRACTS, WATCH, internal_transfers(paid, failed, inside or [[]], WATCH))
    nothing = [receipt(1, status="0x0")]
    assert transfers_of(block(1, transactions=[PAID]), nothing, CONTRACTS, WATCH) == []


@pytest.mark.parametrize("paid, inside", [(block(1, transactions=[PAID]), []), (block(1), [Movement(OTHER, OURS, 1)])])
def test_the_log_of_a_fee_says_nothing_of_an_outcome(paid: RpcBlock, inside: list[Movement]) -> None:
    """Polygon's nodes write it for failed transactions, too; what they write for payments they undo with them."""
    ((address, fee),) = FEE_LOGS
    took = log(0, address=address, topics=[fee, padded(address), padded(OTHER), padded(OTHER)])
    moved = log(1, address=address, topics=[word(7), padded(address), padded(OTHER), padded(OURS)])
    failed = [receipt(1, took, status="0x0")]
    assert transfers_of(paid, failed, CONTRACTS, WATCH, internal_transfers(paid, failed, [inside], WATCH)) == []
    for logs in ([took, moved], [took, replace(took, address=OTHER)], [took, replace(took, topics=[])]):
        lied = [receipt(1, *logs, status="0x0")]
        with pytest.raises(InconsistentChainError, match="says failed"):
            transfers_of(paid, lied, CONTRACTS, WATCH, internal_transfers(paid, lied, [inside], WATCH))


def test_a_failed_payment_stops_no_network_whose_logs_nobody_knows() -> None:
    """Only the network knows what it writes for what failed. Nothing of it is paid, be it coin or a token."""
    failed = [receipt(1, log(0, address=OTHER), status="0x0")]
    assert transfers_of(block(1, transactions=[PAID]), failed, CONTRACTS, WATCH, logs_known=False) == []
    kept = [receipt(1, log(0), status="0x0")]
    assert transfers_of(block(1), kept, CONTRACTS, WATCH, logs_known=False) == []
    assert len(transfers_of(block(1), [receipt(1, log(0))], CONTRACTS, WATCH, logs_known=False)) == 1


def test_a_real_deposit_is_read() -> None:
    """As Base's nodes tell of it: sender and recipient are one address."""
    told = (
        b'{"hash":"%b","type":"0x7e","from":"%b","to":"%b","value":"0x0","mint":"0x20f5b1eaad8d80000",'
        b'"sourceHash":"%b","isSystemTx":false,"gas":"0x186a0","nonce":"0x1"}'
    ) % (word(1).encode(), OURS.encode(), OURS.encode(), word(2).encode())
    paid = block(1, transactions=[msgspec.json.decode(told, type=RpcTransaction)])
    (one,) = transfers_of(paid, [receipt(1)], {}, WATCH)
    assert (one.position, one.amount, one.contract) == ("mint", 38 * 10**18, None)
    assert one.sender == "0x" + "0" * 40


def filtered(*logs: RpcLog) -> str:
    return f"0x{bloom_of(logs):0512x}"


def test_a_receipts_filter_finds_logs_that_were_changed() -> None:
    """A recipient that was exchanged, a log that is gone, a contract of another name."""
    true = log(0)
    check_blooms([receipt(1, true, logs_bloom=filtered(true))], CONTRACTS)
    check_blooms([receipt(1, true)], CONTRACTS)
    check_blooms([receipt(1, true, logs_bloom="0x" + "0" * 512)], CONTRACTS)
    for changed in (
        log(0, topics=[TRANSFER_TOPIC, padded(OTHER), padded(OTHER)]),
        log(0, topics=[word(1), padded(OTHER), padded(OURS)]),
        log(0, topics=[TRANSFER_TOPIC.upper(), padded(OTHER), padded(OURS)]),
        log(0, address=OTHER),
    ):
        with pytest.raises(InconsistentChainError):
            check_blooms([receipt(1, changed, logs_bloom=filtered(true))], CONTRACTS)
    with pytest.raises(InconsistentChainError):
        check_blooms([receipt(1, log(0, address=OTHER), logs_bloom=filtered(log(0, address=OTHER), true))], CONTRACTS)
    with pytest.raises(InconsistentChainError):
        check_blooms([receipt(1, true, logs_bloom="0x12")], CONTRACTS)


@pytest.mark.parametrize("untold", ["", "0x" + "0" * 512, "0x" + "f" * 512])
@pytest.mark.parametrize(
    "changes",
    [
        {"address": "0x" + "aB" * 20},
        {"address": "0X" + "ab" * 20},
        {"topics": [TRANSFER_TOPIC.upper().replace("0X", "0x"), padded(OTHER), padded(OURS)]},
    ],
)
def test_logs_that_are_spelt_in_another_case_are_refused_where_no_filter_tells_of_them(
    untold: str, changes: dict[str, Any]
) -> None:
    """They would be passed over: what was paid would never be seen."""
    own = "0x" + "ab" * 20
    contracts = {TOKEN: TOKEN, own: own}
    check_blooms([receipt(1, log(0, address=own), logs_bloom=untold)], contracts)
    check_blooms([receipt(1, log(0, topics=[]), logs_bloom=untold)], contracts)
    with pytest.raises(InconsistentChainError, match="spells"):
        check_blooms([receipt(1, log(0, **{"address": own, **changes}), logs_bloom=untold)], contracts)


@pytest.mark.parametrize("kind", ["", "EXTCALL", "call"])
def test_a_call_of_no_known_kind_is_an_outage(kind: str) -> None:
    """It may move coin."""
    with pytest.raises(InconsistentChainError, match="no known kind"):
        list(walk_frames(frame("CALL", frame(kind))))
    with pytest.raises(InconsistentChainError, match="no known kind"):
        from_flat_traces(block(1), [flat(), FlatTrace(kind.upper(), FlatAction(), [0], word(1))])


def flat(*path: int, error: str | None = None) -> FlatTrace:
    """Return a call that moves as much as its path says, as a flat trace tells it: 0.1 moves 21 wei."""
    action = FlatAction(sender=OTHER, to=OURS, value=hex(10 * len(path) + sum(path)), call_type="call")
    return FlatTrace("call", action, list(path), word(1), error=error)


def test_flat_traces_are_a_tree_in_the_order_of_execution() -> None:
    """Else a call below a failed one, told before it, would pay; and a call that is told twice would pay twice."""
    (moved,) = from_flat_traces(block(1), [flat(), flat(0), flat(0, 1), flat(2)])
    assert [one.value for one in moved] == [10, 21, 12]
    (failed,) = from_flat_traces(block(1), [flat(), flat(0, error="out of gas"), flat(0, 0), flat(1)])
    assert [one.value for one in failed] == [11]
    for told in (
        [flat(), flat(0, 0), flat(0, error="out of gas")],
        [flat(), flat(0), flat(0)],
        [flat(), flat(1), flat(0)],
        [flat(), flat(0, 0)],
        [flat(0)],
        [flat(), flat(-1)],
    ):
        with pytest.raises(InconsistentChainError, match="traced"):
            from_flat_traces(block(1), told)


def frame(kind: str = "CALL", *calls: CallFrame, **changes: Any) -> CallFrame:
    return CallFrame(**{"type": kind, "sender": OTHER, "to": OURS, "value": "0x1", "calls": list(calls), **changes})


def test_an_error_undoes_all_frames_below_it() -> None:
    """The frame itself, its children, and everything under a failed transaction."""
    inner = frame("CALL", frame(value="0x2"), frame("CALL", frame(), error="out of gas"))
    assert [moved.value for moved in walk_frames(frame("CALL", inner, frame(value="0x3")))] == [1, 2, 3]
    assert list(walk_frames(frame("CALL", inner, error="execution reverted"))) == []


@pytest.mark.parametrize("kind", ["DELEGATECALL", "CALLCODE", "STATICCALL"])
def test_kinds_of_calls_that_move_nothing(kind: str) -> None:
    """Although nodes repeat a value for them. Calls below still count."""
    assert [moved.value for moved in walk_frames(frame("CALL", frame(kind, frame(value="0x2"))))] == [2]


def test_a_thousand_nested_calls_are_walked() -> None:
    """As deep as the EVM allows, which is deeper than Python's stack."""
    nested = frame()
    for _ in range(1023):
        nested = frame("CALL", nested, value="0x0")
    assert len(list(walk_frames(frame("CALL", nested)))) == 1


@pytest.mark.skipif(sys.version_info[:2] == (3, 12), reason="its limit for C code cannot be moved")
def test_answers_nested_as_deeply_as_the_evm_allows_are_decoded() -> None:
    """For the price of a swap anybody can nest calls deeper than Python's recursion limit."""
    top = b'{"type":"CALL","from":"%b","to":"%b","value":"0x1","calls":[' % (OTHER.encode(), OURS.encode())
    body = b'[{"id":1,"result":%b}]' % (top * 1024 + b"]}" * 1024)
    limit = sys.getrecursionlimit()
    (answer,) = decode_deep(msgspec.json.Decoder(list[Answer[CallFrame]]), body)
    assert isinstance(answer.result, CallFrame)
    assert sum(1 for _ in walk_frames(answer.result)) == 1023
    assert sys.getrecursionlimit() == limit


def test_traces_of_another_block_or_with_gaps_are_an_outage() -> None:
    """By count, by hash, by an error in the place of a trace."""
    for traced in ([], [TracedTransaction(word(5), frame())], [TracedTransaction(word(1), None, "timeout")]):
        with pytest.raises(InconsistentChainError):
            from_call_frames(block(1), traced)
    for flat in (
        [],
        [FlatTrace("call", FlatAction(), [], word(5))],
        [FlatTrace("call", FlatAction(), [], word(1), word(1))],
    ):
        with pytest.raises(InconsistentChainError):
            from_flat_traces(block(1), flat)


def test_polygons_synthetic_transaction_needs_no_trace() -> None:
    """Nobody sent it, and not all nodes trace it."""
    zero = "0x" + "0" * 40
    paid = block(1)
    paid.transactions.append(RpcTransaction(word(2), zero, "0x0", zero))
    moved = from_call_frames(paid, [TracedTransaction(word(1), frame("CALL", frame()))])
    assert [len(one) for one in moved] == [1, 0]
