"""What the registry asks of a plugin's answers and of its table, and how it words what is wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
import msgspec.inspect

from cambist.deadlines import words_of
from cambist.plugin import AddressFamily, ChainInfo, ConfigError

T = TypeVar("T")

COIN_TYPE_MAX = 2**31 - 1
"""The greatest number that a hardened step of a derivation path holds."""
DECIMALS_MAX = 36

_CHAIN_ID = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
_FAMILY_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
_CONTRACT = re.compile(r"[!-~]{1,128}", re.ASCII)
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<field>[^`]*)`(?: - at `\$\.?(?P<path>[^`]*)`)?")
_AT_PATH = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?", re.DOTALL)


class RegistryError(Exception):
    """A plugin cannot be used, so the start stops. The text is one sentence that names the plugin."""


def plugin_error(name: str, text: str) -> RegistryError:
    return RegistryError(f"plugin {name!r}: {text}")


def guarded(name: str, what: str, call: Callable[[], T]) -> T:
    """Call into a plugin; whatever it raises becomes one sentence."""
    try:
        return call()
    except (RegistryError, KeyboardInterrupt):
        raise  # a sentence already, or the operator's
    except ConfigError as error:
        # Plugins name a setting from the top of the file; the table is said already.
        what = str(error).removeprefix(f"plugins.{name}.")
        raise plugin_error(name, f"[plugins.{name}] {what}") from error
    except BaseException as error:
        raise plugin_error(name, f"{what} failed with {words_of(error) or type(error).__name__}") from error


def decode_config(name: str, config_type: type[Any], table: Mapping[str, object]) -> Any:  # noqa: ANN401 - of config_type
    """Decode a plugin's table, strictly: no unknown field, no text for a number."""
    return guarded(name, f"decoding [plugins.{name}]", partial(_decode, name, config_type, table))


def _decode(name: str, config_type: type[Any], table: Mapping[str, object]) -> Any:  # noqa: ANN401 - likewise
    try:
        return msgspec.convert(table, config_type, strict=True)
    except msgspec.ValidationError as error:
        raise plugin_error(name, _explain(name, config_type, str(error))) from error


def _explain(name: str, config_type: type[Any], message: str) -> str:
    if match := _UNKNOWN_FIELD.fullmatch(message):
        field, path = match["field"], match["path"]
        where = f"[plugins.{name}.{path}]" if path else f"[plugins.{name}]"
        known = [] if path else [known.encode_name for known in msgspec.structs.fields(config_type)]
        nearest = difflib.get_close_matches(field, known, n=1)
        hint = f", did you mean {nearest[0]!r}?" if nearest else ""
        return f"{where} has an unknown field {field!r}{hint}"
    match = _AT_PATH.fullmatch(message)
    if match and match["path"]:
        return f"[plugins.{name}] {match['path']}: {match['what']}{_choices(config_type, match['path'])}"
    return f"[plugins.{name}] {message}"


def _choices(config_type: type[Any], setting: str) -> str:
    """Say which words a setting of the table takes, where it takes only some."""
    info = msgspec.inspect.type_info(config_type)
    if isinstance(info, msgspec.inspect.StructType):
        for field in info.fields:
            if field.encode_name == setting and isinstance(field.type, msgspec.inspect.LiteralType):
                return f"; it is one of {', '.join(repr(value) for value in field.type.values)}"
    return ""


def check_family(name: str, family: object) -> None:
    """Refuse a family under which no keys could be made: those of all families are made together."""
    guarded(name, "families()", partial(_check_family, name, family))


def _check_family(name: str, family: object) -> None:
    if not isinstance(family, AddressFamily):
        raise plugin_error(name, f"families() returned {family!r}, which is no AddressFamily")
    # What a class states is looked at by nobody before.
    stated: object = family.name
    if not isinstance(stated, str) or _FAMILY_NAME.fullmatch(stated) is None:
        text = f"an address family calls itself {stated!r}; its name is 1 to 32 of a-z, 0-9 and _, a letter first"
        raise plugin_error(name, text)
    coin_type: object = family.coin_type
    if type(coin_type) is not int or not 0 <= coin_type <= COIN_TYPE_MAX:
        text = f"the address family {stated!r} has the coin_type {coin_type!r}; it is a whole number below 2**31"
        raise plugin_error(name, text)


def check_chains(name: str, infos: Sequence[ChainInfo], families: Mapping[str, AddressFamily]) -> None:
    """Refuse chains that make no sense to the rest of the gateway."""
    guarded(name, "chains()", partial(_check_chains, name, infos, families))


def _check_chains(name: str, infos: Sequence[ChainInfo], families: Mapping[str, AddressFamily]) -> None:
    for info in infos:
        if not isinstance(info, ChainInfo):
            raise plugin_error(name, f"chains() returned {info!r}, which is no ChainInfo")
        _check_values(name, info)
        if info.family not in families:
            text = f"the chain {info.id!r} is of the address family {info.family!r}, which no enabled plugin brings"
            raise plugin_error(name, text)
        if [token.is_native for token in info.tokens] != [True] + [False] * (len(info.tokens) - 1):
            raise plugin_error(name, f"the tokens of the chain {info.id!r} do not start with its one native coin")
        for what in ("symbol", "contract"):
            values = [getattr(token, what) for token in info.tokens]
            for value in values:
                if values.count(value) > 1:
                    raise plugin_error(name, f"the chain {info.id!r} has two tokens of the {what} {value!r}")


def _check_values(name: str, info: ChainInfo) -> None:
    """Refuse what is of another type than it should be, for a Struct takes whatever it is given, or out of range."""
    try:
        stated = {field: getattr(info, field) for field in ChainInfo.__struct_fields__}  # a plugin's own may have more
        msgspec.convert(msgspec.to_builtins(stated), ChainInfo, strict=True)
    except msgspec.ValidationError as error:
        raise plugin_error(name, f"the chain {info.id!r} is malformed: {error}") from error
    if _CHAIN_ID.fullmatch(info.id) is None:
        raise plugin_error(name, f"{info.id!r} is no id of a chain; it is 1 to 32 of a-z, 0-9, _ and -, a letter first")
    for what in ("confirmations", "span_max", "hashes_kept", "poll_interval_ms"):
        if getattr(info, what) < 1:
            raise plugin_error(name, f"{what} of the chain {info.id!r} is {getattr(info, what)}; it is at least 1")
    for token in info.tokens:
        if not 0 <= token.decimals <= DECIMALS_MAX or token.least_units < 1:
            facts = f"{token.decimals} decimals and {token.least_units} least_units"
            raise plugin_error(name, f"{token.symbol} of the chain {info.id!r} makes no sense: {facts}")
        # The books name a token by its contract, and the native coin by a word.
        if token.contract is not None and (_CONTRACT.fullmatch(token.contract) is None or token.contract == "native"):
            text = f"the chain {info.id!r} has the contract {token.contract!r} for {token.symbol}"
            raise plugin_error(name, f"{text}; one is 1 to 128 printable characters without spaces, and not 'native'")
