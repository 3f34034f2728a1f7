"""What the reader tells of real swaps, beside what the chain shows of them; and what it refuses."""

from __future__ import annotations

import pytest

from cambist.plugin import Call, Token, Units, UnreadablePayloadError
from cambist_swap_1inch.addresses import parse_address, spell
from cambist_swap_1inch.codec import web3_codec
from cambist_swap_1inch.config import ChainConfig, OneInchConfig, routers
from cambist_swap_1inch.reader import OneInchReader

from .conftest import ETHEREUM, RECIPIENT, SENDER, STRANGER, USDC, USDT, chain
from .server import KEY, NATIVE, ROUTER, TAIL, TYPES, ZERO, calldata, recorded

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
SWAPS = ["arbitrum_5a092c4d40.json", "base_5b41c094c4.json", "bsc_243744958f.json", "ethereum_bd2aeb7ea4.json"]

NAMES = ["src", "dst", "receiver", "amount", "amount_min"]
USUAL = dict(zip(NAMES, [USDT.contract, USDC.contract, RECIPIENT, 5_000_000, 4_900_000], strict=True))


def token(address):
    return Token(symbol=address[2:8].upper(), contract=spell(address), decimals=18, label=address)


def call_of(tx):
    return Call(to_address=spell(tx["to"]), data=bytes.fromhex(tx["input"][2:]), value=Units(int(tx["value"], 16)))


def word_address(word):
    return spell("0x" + word[-40:])


def transfers(receipt):
    """Return contract, sender, recipient and amount of every token that moved."""
    return [
        (
            spell(log["address"]),
            word_address(log["topics"][1]),
            word_address(log["topics"][2]),
            int(log["data"], 16),
        )
        for log in receipt["logs"]
        if log["topics"][:1] == [TRANSFER]
    ]


def real(name):
    """Return a recorded swap, its chain with both tokens registered, its sender and its call."""
    swap = recorded(name)
    tx = swap["transaction"]
    words = [tx["input"][10 + at : 74 + at] for at in range(0, 640, 64)]
    tokens = tuple(token("0x" + word[24:]) for word in words[1:3] if "0x" + word[24:] != NATIVE)
    return swap, chain(name.split("_")[0], int(tx["chainId"], 16), tokens), spell(tx["from"]), call_of(tx)


def read(reader, call, on=ETHEREUM, sender=SENDER):
    return reader.read(on, sender, call, {on.id: on})


def usual(**changes):
    value = changes.pop("value", 0)
    return Call(to_address=ROUTER, data=calldata(**USUAL | changes), value=value)


@pytest.mark.parametrize("name", SWAPS)
def test_what_it_takes_of_a_real_swap_is_what_the_chain_shows(reader, name):
    swap, on, sender, call = real(name)
    effects = read(reader, call, on, sender)
    assert effects.chain == on.id
    assert effects.spender == ROUTER
    if "receipt" in swap:
        left = [(contract, units) for contract, source, _, units in transfers(swap["receipt"]) if source == sender]
        assert left == [(effects.sold_contract, effects.sold)]


@pytest.mark.parametrize("name", SWAPS)
def test_a_real_swap_goes_to_who_sent_it_and_gives_at_least_what_is_told(reader, name):
    swap, on, sender, call = real(name)
    effects = read(reader, call, on, sender)
    assert effects.recipient == sender
    assert effects.bought_min > 0
    given = [
        (contract, units)
        for contract, _, recipient, units in transfers(swap.get("receipt", {"logs": []}))
        if recipient == sender
    ]
    given += [(None, int(one["value"])) for one in swap.get("internal", ()) if spell(one["to"]) == sender]
    assert {contract for contract, _ in given} <= {effects.bought_contract}
    assert all(units >= effects.bought_min for _, units in given)
    assert bool(given) == (name.startswith(("base", "ethereum")))  # of the others native output was not recorded


def test_real_swaps_end_in_the_four_bytes_of_who_asked(reader):
    for name in SWAPS:
        _, on, sender, call = real(name)
        without = Call(to_address=call.to_address, data=call.data[:-4])
        assert read(reader, without, on, sender) == read(reader, call, on, sender)


def test_native_coin_goes_along_as_the_value_and_needs_no_spender(reader):
    effects = read(reader, usual(src=NATIVE, value=5_000_000))
    assert (effects.sold_contract, effects.sold, effects.spender) == (None, 5_000_000, None)


def test_native_coin_can_be_bought(reader):
    assert read(reader, usual(dst=NATIVE)).bought_contract is None


def test_no_recipient_is_the_sender_as_the_router_has_it(reader):
    assert read(reader, usual(receiver=ZERO)).recipient == SENDER


@pytest.mark.parametrize("to_address", [STRANGER, ROUTER.lower(), USDT.contract])
def test_a_call_of_another_contract_is_not_of_this_provider(reader, to_address):
    assert read(reader, Call(to_address=to_address, data=calldata(**USUAL))) is None


def test_on_a_chain_without_a_router_nothing_is_read_and_nobody_may_spend(reader):
    for on in (chain("gnosis", 100), chain("tron", None, is_evm=False), chain("odd", 1, is_evm=False)):
        assert read(reader, usual(), on) is None
        assert reader.spenders(on) == frozenset()
    assert reader.spenders(ETHEREUM) == {ROUTER}


def test_the_operators_router_stands_for_the_pinned_one(codec):
    config = OneInchConfig(
        key=KEY, chains={"ethereum": ChainConfig(router=STRANGER), "gnosis": ChainConfig(router=STRANGER.lower())}
    )
    own = OneInchReader(routers(config), codec)
    call = Call(to_address=STRANGER, data=calldata(**USUAL))
    for on in (ETHEREUM, chain("gnosis", 100)):
        assert own.spenders(on) == {STRANGER}
        assert read(own, call, on).spender == STRANGER
        assert read(own, usual(), on) is None
    assert own.spenders(chain("base", 8453)) == {ROUTER}


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"flags": 1}, "a partial fill"),
        ({"flags": 2}, "more native coin than it sells"),
        ({"flags": 4}, "Permit2"),
        ({"flags": 7}, "a partial fill, more native coin than it sells, Permit2"),
        ({"flags": 8}, "something unknown"),
        ({"flags": 1 << 255}, "something unknown"),
        ({"amount": 0}, "sells nothing"),
        ({"amount_min": 0}, "no least output"),
        ({"value": 1}, "value"),
        ({"value": 5_000_000}, "value"),
        ({"src": NATIVE}, "value"),
        ({"src": NATIVE, "value": 5_000_001}, "value"),
        ({"src": NATIVE, "value": 4_999_999}, "value"),
        ({"src": STRANGER}, "sells 0x9531C059098e3d194fF87FebB587aB07B30B1306, which is no registered token"),
        ({"dst": STRANGER}, "buys 0x9531C059098e3d194fF87FebB587aB07B30B1306, which is no registered token"),
        ({"src": ZERO, "value": 5_000_000}, "no registered token"),
        ({"dst": ZERO}, "no registered token"),
        ({"dst": USDT.contract}, "for itself"),
        ({"src": NATIVE, "dst": NATIVE, "value": 5_000_000}, "for itself"),
        ({"tail": b"\0"}, "canonical"),
        ({"tail": TAIL + b"\0"}, "canonical"),
        ({"tail": bytes(32)}, "canonical"),
        ({"data": bytes(140_000)}, "longer"),
    ],
)  # fmt: skip
def test_what_is_not_told_whole_is_refused(reader, changes, words):
    with pytest.raises(UnreadablePayloadError, match=words):
        read(reader, usual(**changes))


@pytest.mark.parametrize(
    "selector",
    "83800a8e 8770ba91 19367472 e2c95c82 ea76dddf f7a70056 a76dfc3b 175accdc d2d374e5 c4d652af 00000000".split(),
)
def test_other_functions_of_the_router_are_refused(reader, selector):
    data = bytes.fromhex(selector) + calldata(**USUAL)[4:]
    with pytest.raises(UnreadablePayloadError, match=selector):
        read(reader, Call(to_address=ROUTER, data=data))


@pytest.mark.parametrize("data", [b"", b"\x07", bytes.fromhex("07ed2379"), bytes.fromhex("07ed2379") + bytes(31)])
def test_what_is_cut_off_is_refused(reader, data):
    with pytest.raises(UnreadablePayloadError):
        read(reader, Call(to_address=ROUTER, data=data))


def test_what_the_contract_would_read_and_nobody_writes_is_refused(reader, codec):
    """The bytes after another offset, and addresses with more than 20 bytes."""
    data = calldata(**USUAL, tail=b"")
    moved = data[:4] + data[4:260] + (0x140).to_bytes(32, "big") + bytes(32) + data[292:]
    assert codec.decode(TYPES, moved[4:]) == codec.decode(TYPES, data[4:])
    dirty = data[:36] + b"\1" + data[37:]
    overflowing = data[:292] + b"\xff" * 32 + data[324:]
    for one in (moved, dirty, overflowing):
        with pytest.raises(UnreadablePayloadError):
            read(reader, Call(to_address=ROUTER, data=one))


def test_addresses_are_spelled_with_their_checksum():
    for address in (ROUTER, SENDER, RECIPIENT, STRANGER, USDT.contract, USDC.contract):
        for text in (address, address.lower(), "0x" + address[2:].upper()):
            assert parse_address(text) == address
        assert parse_address(address.swapcase().replace("0X", "0x")) is None
    for text in ("", "0x", ROUTER[2:], ROUTER + "0", ROUTER[:-1] + "g", " " + ROUTER, ROUTER + "\n"):
        assert parse_address(text) is None


def test_the_codec_is_web3s():
    assert type(web3_codec()).__module__.startswith("eth_abi")
