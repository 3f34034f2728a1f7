"""Recorded blocks with one thing changed in them: each is refused, tells the same, or is a chain that could be.

What no other part of an answer speaks of can be changed into another value of its kind, and nobody who asks one node
alone finds out: amounts, ends and outcomes. That is what a quorum is for. Everything else is noticed.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest
from eth_typing import HexStr
from web3 import Web3

from cambist.plugin import ChainError, Transfer
from cambist.testing import EveryAddress
from cambist_chainkit.answers import unreadable
from cambist_evm.addresses import spell
from cambist_evm.decode import check_blooms, check_header, check_receipts, transfers_of
from cambist_evm.wire import RpcBlock, RpcReceipt

from .test_recorded_blocks import whole_block

CASES = 100_000 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 400
TRANSACTIONS = 30
SEED = int(os.environ.get("CAMBIST_TEST_SEED", "20261122"))

Json = Any
Path = tuple[str | int, ...]

FREE = re.compile(r"block transactions \d+ (?:value|to|from|type|mint)|receipts \d+ (?:status|logs \d+ data)", re.ASCII)
"""What one answer alone decides, as long as it is well-formed."""

FILTERED = re.compile(r"receipts (\d+) logs \d+ (?:address|topics.*)", re.ASCII)
"""What the receipt's filter speaks of, too: as far as it goes."""

WELL_FORMED = {
    "value": re.compile(r"0x[0-9a-fA-F]{1,64}"),
    "mint": re.compile(r"0x[0-9a-fA-F]{1,64}|None"),
    "status": re.compile(r"0x[0-9a-fA-F]{1,64}"),
    "to": re.compile(r"0x[0-9a-fA-F]{40}|None"),
    "from": re.compile(r"0x[0-9a-fA-F]{40}"),
    "type": re.compile(r".*", re.DOTALL),
    "data": re.compile(r"0x(?:[0-9a-fA-F]{64})*"),
}

TEXTS = [
    "",
    "0x",
    "0x0",
    "-0x5",
    "0x_1",
    "10",
    "0x\uff11",
    "0x1" + "0" * 64,
    "0x" + "f" * 64,
    "1" * 5000,
    "null",
    "\ud7ff",
]


def places(value: Json, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, below in value.items():
            yield from places(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from places(below, (*path, index))


def changed(value: Json, random: Random) -> Json:
    """Return something else than a value: of its kind or of another."""
    if isinstance(value, str) and len(value) > 3 and random.random() < 0.6:
        at = random.randrange(2, len(value))
        return random.choice(
            [
                value[:at] + random.choice("0123456789abcdef") + value[at + 1 :],
                value[:at],
                value + "0" * random.choice([1, 64, 5000]),
                value.upper(),
                value[:at] + " " + value[at + 1 :],
                value[:at] + "g" + value[at + 1 :],
            ]
        )
    return random.choice([*TEXTS, None, 0, 1, -1, 10**30, 1.5, True, [], {}, [value], {"0": value}])


def mutate(answers: Json, random: Random, all_places: list[Path]) -> Path:
    """Change one place, and return which."""
    path = random.choice(all_places)
    holder = answers
    for step in path[:-1]:
        holder = holder[step]
    last = path[-1]
    kind = random.random()
    if isinstance(holder, list) and len(holder) > 1 and kind < 0.5:
        other = random.randrange(len(holder))
        how = random.randrange(4)
        if how == 0:
            del holder[last]
        elif how == 1:
            holder.insert(other, copy.deepcopy(holder[last]))
        elif how == 2:
            holder[last], holder[other] = holder[other], holder[last]
        else:
            holder[last] = copy.deepcopy(holder[other])
    elif isinstance(holder, dict) and kind < 0.1:
        del holder[last]
    else:
        holder[last] = changed(holder[last], random)
    return path


def read(answers: Json, contracts: dict[str, str], height: int) -> list[Transfer]:
    """Read as production does. Raises ChainError, or what is a defect."""
    body = json.dumps(answers).encode()
    try:
        told = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        block = msgspec.json.decode(told["block"], type=RpcBlock)
        receipts = msgspec.json.decode(told["receipts"], type=list[RpcReceipt])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable("node", "eth_getBlockByNumber", body, error) from error
    check_header(block, height)
    check_receipts(block, receipts)
    check_blooms(receipts, contracts)
    return transfers_of(block, receipts, contracts, EveryAddress())


def moves(transfers: list[Transfer]) -> set[tuple[Any, ...]]:
    return {(one.tx_id, one.position, one.recipient, one.contract, one.amount) for one in transfers}


def bits(items: set[str]) -> int:
    """Return the filter of addresses and topics, as the Yellow Paper has it."""
    found = 0
    for item in items:
        digest = Web3.keccak(hexstr=HexStr(item))
        for pair in range(0, 6, 2):
            found |= 1 << (int.from_bytes(digest[pair : pair + 2], "big") % 2048)
    return found


def could_be(path: Path, answers: Json) -> bool:
    """Return whether another value of its kind stands in a place of which nothing else speaks."""
    text = " ".join(map(str, path))
    if filtered := FILTERED.fullmatch(text):
        receipt = answers["receipts"][int(filtered[1])]
        items = {item for log in receipt["logs"] for item in (log["address"], *log["topics"])}
        return bits(items) == int(receipt["logsBloom"], 16)
    holder = answers
    try:
        for step in path:
            holder = holder[step]
    except (KeyError, IndexError, TypeError):
        holder = None
    return FREE.fullmatch(text) is not None and WELL_FORMED[str(path[-1])].fullmatch(str(holder)) is not None


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["helios_block_with_receipts", "zeta_full_block"])
def test_a_changed_block_is_refused_or_tells_the_same_or_could_be(name: str) -> None:
    """None silent, and none stumbles over."""
    random = Random(f"{SEED}/{name}")
    block, receipts = whole_block(name)
    block["transactions"], receipts = block["transactions"][:TRANSACTIONS], receipts[:TRANSACTIONS]
    height = int(block["number"], 16)
    original = {"block": block, "receipts": receipts}
    addresses = {log["address"] for receipt in receipts for log in receipt["logs"]}
    contracts = {address: spell(address[2:]) for address in addresses}
    honest = moves(read(original, contracts, height))
    assert honest
    slots = [path for path in places(original) if len(path) > 1]
    free = [path for path in slots if FREE.fullmatch(" ".join(map(str, path)))]
    text = json.dumps(original)
    outcomes = {"refused": 0, "same": 0, "could be": 0}
    for _ in range(CASES):
        answers = json.loads(text)
        path = mutate(answers, random, free if random.random() < 0.2 else slots)
        try:
            found = moves(read(answers, contracts, height))
        except ChainError:
            outcomes["refused"] += 1
            continue
        if found == honest:
            outcomes["same"] += 1
            continue
        outcomes["could be"] += 1
        assert could_be(path, answers), (path, found ^ honest)
    assert min(outcomes.values()) > 0, outcomes
