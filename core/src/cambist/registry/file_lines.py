"""How a token is written into the operator's file: a table where its plugin reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from cambist.plugin import Token

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def lines_of(name: str, config: Any, token: Token) -> str | None:  # noqa: ANN401 - of the plugin's config_type
    """Return the lines that stand for a token in a configuration of the plugin ``name``, as TOML, with a last newline.

    ``config`` has the token. None where no list of tables in it names the token's contract.
    """
    found = next(_tables(msgspec.to_builtins(config, enc_hook=str), token.contract, ("plugins", name)), None)
    if found is None:
        return None
    path, table = found
    values = [f"{_key(key)} = {_value(value)}\n" for key, value in table.items() if value is not None]
    return f"[[{'.'.join(_key(part) for part in path)}]]\n{''.join(values)}"


def _tables(
    value: object, contract: str | None, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _tables(inner, contract, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for one in value:
            if isinstance(one, Mapping) and contract in one.values():
                yield path, one


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _value(text)


def _value(value: object) -> str:
    # A text, a number or a truth value is written in TOML as in JSON.
    return json.dumps(value, ensure_ascii=False)
