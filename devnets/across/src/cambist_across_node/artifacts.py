"""Across's own contracts, compiled, as npm brings them, and the token that stands for any other."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from cambist.testing.contracts import Artifact, load

_PACKAGE: Final = Path("node_modules/@across-protocol/contracts/dist/evm/artifacts")


class ContractsMissingError(RuntimeError):
    """Across's contracts are not on this machine."""


@cache
def across(name: str) -> Artifact:
    """Return one of the contracts that npm brought. Raises ContractsMissingError."""
    return msgspec.json.decode((_folder() / f"{name}.sol" / f"{name}.json").read_bytes(), type=Artifact)


def pool() -> Artifact:
    """Return the contract that takes deposits and makes fills."""
    return across("Ethereum_SpokePool")


def wrapped() -> Artifact:
    """Return the token that wraps native coin."""
    return across("WETH9")


def token() -> Artifact:
    """Return an ordinary token, which anybody may mint."""
    return load("TestToken")


def _folder() -> Path:
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for folder in (start, *start.parents):
            for found in (folder / "tests" / _PACKAGE, folder / _PACKAGE):
                if found.is_dir():
                    return found
    raise ContractsMissingError("Across's contracts are missing: run npm install @across-protocol/contracts")
