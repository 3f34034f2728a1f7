"""The contract that empties many addresses at once, ``contracts/Sweeper.sol``: its calls, and where it is. Pure.

It is deployed through the keyless deployer that every chain has at the same address, which makes the sweeper's own
address a proof: nothing but our code with this very sponsor can ever be there. The same goes for its *agent*, the clone
of it that addresses delegate to, and that is there only while a sweep runs.
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

# EIP-1167: copies the code behind it, which calls another contract's code as its own.
_CLONE: Final = (
    bytes.fromhex("3d602d80600a3d3981f3363d3d373d3d3d363d73"),
    bytes.fromhex("5af43d82803e903d91602b57fd5bf3"),
)
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
    address = _created(DEPLOYER, code)
    return SweeperDeployment(address=address, to_address=DEPLOYER, data=_SALT + code, delegate=agent_of(address))


@cache
def agent_of(sweeper: str) -> str:
    """Return what addresses delegate to so that this sweeper may empty them. It has code only while a sweep runs."""
    before, after = _CLONE
    return _created(sweeper, before + bytes.fromhex(sweeper[2:]) + after)


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


def _created(creator: str, code: bytes) -> str:
    """Return where a contract is that another one makes of this creation code (EIP-1014)."""
    hashed = keccak(b"\xff" + bytes.fromhex(creator[2:]) + _SALT + keccak(code))
    return spell(hashed[12:].hex())


def _contract(token: Token) -> str:
    return token.contract or "0x" + _NATIVE.hex()


def _word(address: str) -> bytes:
    return _PADDING + bytes.fromhex(address[2:])


def _address(word: bytes) -> str:
    return spell(word[len(_PADDING) :].hex())
