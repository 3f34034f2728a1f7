"""Uniswap's own compiled contracts, which npm brings: its licence is another one, so they are not copied here."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from cambist.testing.contracts import Artifact

CORE: Final = "v2-core"
PERIPHERY: Final = "v2-periphery"

_IN_MODULES: Final = Path("node_modules/@uniswap")


class UniswapMissingError(RuntimeError):
    """Uniswap's contracts are not on this machine."""


class _Compiled(msgspec.Struct):
    abi: msgspec.Raw
    bytecode: str


@cache
def load(package: str, name: str) -> Artifact:
    """Return a contract of ``@uniswap/v2-core`` or ``@uniswap/v2-periphery``. Raises UniswapMissingError."""
    compiled = msgspec.json.decode((_folder() / package / "build" / f"{name}.json").read_bytes(), type=_Compiled)
    return Artifact(abi=compiled.abi, bytecode="0x" + compiled.bytecode)


def _folder() -> Path:
    """Return what npm installed: below the working directory or above, or in the workspace of this file."""
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for folder in (start, *start.parents):
            for modules in (folder / "tests" / _IN_MODULES, folder / _IN_MODULES):
                if (modules / CORE).is_dir() and (modules / PERIPHERY).is_dir():
                    return modules
    raise UniswapMissingError("Uniswap is missing: run npm install @uniswap/v2-periphery@1.1.0-beta.0")
