"""The contract that empties many addresses at once, ``contracts/Sweeper.sol``: its calls, and where it is. Pure.

It is deployed through the keyless deployer that every chain has at the same address, which makes the sweeper's own
address a proof: nothing but our code with this very sponsor can ever be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from cambist.plugin import Intent, Movement, SweeperDeployment, Token, Units
from cambist_chainkit.eip55 import ADDRESS_BYTES, keccak, spell

COLLECT: Final = keccak(b"collect((address,address,address,uint256)[])")[:4]
DEPLOYER: Final = "0x4e59b44847b379578588920cA78FbF26c0B4956C"

_SALT: Final = bytes(32)
_WORD: Final = 32
_ITEM_WORDS: Final = 4
_HEAD_BYTES: Final = 4 + 2 * _WORD
_PADDING: Final = bytes(_WORD - ADDRESS_BYTES)
_NATIVE: Final = bytes(ADDRESS_BYTES)


class _Artifact(msgspec.Struct, frozen=True):
    bytecode: str


@cache
def creation_code(sponsor: str) -> bytes:
    """Return the code that makes a sweeper which obeys this sponsor."""
    artifact = msgspec.json.decode(
        files(__package__).joinpath("contracts", "Sweeper.json").read_bytes(), type=_Artifact
    )
    return bytes.fromhex(artifact.bytecode[2:]) + _word(sponsor)


def deployment(sponsor: str) -> SweeperDeployment:
    """Return where the sponsor's sweeper is, and what has to be sent to whom so that it is there."""
    code = creation_code(sponsor)
    hashed = keccak(b"\xff" + bytes.fromhex(DEPLOYER[2:]) + _SALT + keccak(code))
    return SweeperDeployment(address=spell(hashed[12:].hex()), to_address=DEPLOYER, data=_SALT + code)


def collect_data(intents: Sequence[Intent]) -> bytes:
    """Return the call that makes all these transfers."""
    words = [_WORD.to_bytes(_WORD, "big"), len(intents).to_bytes(_WORD, "big")]
    for one in intents:
        words += [
            _word(one.source),
            _word(_contract(one.token)),
            _word(one.to_address),
            one.amount.to_bytes(_WORD, "big"),
        ]
    return COLLECT + b"".join(words)


def read_collect(data: bytes) -> tuple[Movement, ...] | None:
    """Return the transfers of a call; None for any other data, and for any other way to write the same."""
    count, rest = divmod(len(data) - _HEAD_BYTES, _ITEM_WORDS * _WORD)
    head = COLLECT + _WORD.to_bytes(_WORD, "big") + max(count, 0).to_bytes(_WORD, "big")
    if count < 1 or rest or data[:_HEAD_BYTES] != head:
        return None
    items = []
    for first in range(_HEAD_BYTES, len(data), _ITEM_WORDS * _WORD):
        source, contract, to_address, amount = (data[first + n * _WORD : first + (n + 1) * _WORD] for n in range(4))
        if any(word[: len(_PADDING)] != _PADDING for word in (source, contract, to_address)):
            return None
        items.append(
            Movement(
                source=_address(source),
                contract=None if contract[len(_PADDING) :] == _NATIVE else _address(contract),
                recipient=_address(to_address),
                amount=Units(int.from_bytes(amount, "big")),
            )
        )
    return tuple(items)


def _contract(token: Token) -> str:
    return token.contract or "0x" + _NATIVE.hex()


def _word(address: str) -> bytes:
    return _PADDING + bytes.fromhex(address[2:])


def _address(word: bytes) -> str:
    return spell(word[len(_PADDING) :].hex())
