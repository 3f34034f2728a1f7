"""Asks 1inch's Swap API, and takes from its answers what is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Final, TypeVar

from msgspec import Meta, Struct, field

from cambist.plugin import ProviderUnavailableError
from cambist.plugin.budgets import WAIT_MAX_S
from cambist_chainkit.providers import QUOTE_WAIT_MAX_S, ProviderClient, ProviderSetup

from .addresses import spell
from .config import WHERE, OneInchConfig
from .refusals import refusal

T = TypeVar("T")

WHO: Final = "1inch"
WORD_MAX: Final = 2**256 - 1

Digits = Annotated[str, Meta(pattern=r"\A[0-9]{1,78}\Z")]
Address = Annotated[str, Meta(pattern=r"\A0x[0-9a-fA-F]{40}\Z")]
Data = Annotated[str, Meta(pattern=r"\A0x[0-9a-fA-F]+\Z")]


class BuiltSwap(Struct, frozen=True):
    """A call as the server built it, and the output that it expects. Addresses are normalized, nothing is believed."""

    units: int
    sender: str
    to_address: str
    value: int
    data: bytes


class _Quote(Struct, frozen=True):
    units: Digits = field(name="dstAmount")


class _Transaction(Struct, frozen=True):
    sender: Address = field(name="from")
    to: Address
    data: Data
    value: Digits


class _Swap(Struct, frozen=True):
    units: Digits = field(name="dstAmount")
    tx: _Transaction


class _Refusal(Struct, frozen=True):
    description: str


def setup(config: OneInchConfig) -> ProviderSetup:
    """Return how 1inch is asked."""
    return ProviderSetup(
        name=WHO,
        table=WHERE,
        base_url=config.base_url,
        key=config.key,
        requests_per_second=config.requests_per_second,
        timeout_ms=config.timeout_ms,
        answer_bytes_max=1_000_000,
        refusals=frozenset({HTTPStatus.BAD_REQUEST}),
        url_setting="base_url or its version",
    )


class OneInchApi:
    """The two questions of a swap. Raises ExchangeRefusedError and ProviderUnavailableError, and nothing else."""

    def __init__(self, client: ProviderClient, version: str) -> None:
        self._client = client
        self._path = f"/swap/v{version}"

    async def quote(self, chain_id: int, params: Mapping[str, str]) -> int:
        """Return how much comes out."""
        answer = await self._ask(f"{chain_id}/quote", params, _Quote, "a quote", QUOTE_WAIT_MAX_S)
        return _number(answer.units)

    async def swap(self, chain_id: int, params: Mapping[str, str]) -> BuiltSwap:
        """Return the call that swaps."""
        answer = await self._ask(f"{chain_id}/swap", params, _Swap, "a swap", WAIT_MAX_S)
        try:
            data = bytes.fromhex(answer.tx.data[2:])
        except ValueError:
            raise ProviderUnavailableError(f"{WHO} answers with something else than a swap") from None
        return BuiltSwap(
            units=_number(answer.units),
            sender=spell(answer.tx.sender),
            to_address=spell(answer.tx.to),
            value=_number(answer.tx.value),
            data=data,
        )

    async def _ask(self, path: str, params: Mapping[str, str], kind: type[T], wanted: str, wait_max_s: float) -> T:
        answer = await self._client.get(f"{self._path}/{path}", params, wait_max_s=wait_max_s)
        if answer.refused:
            raise refusal(self._client.redacted(self._client.decode(answer, _Refusal, "a refusal").description))
        return self._client.decode(answer, kind, wanted)


def _number(digits: str) -> int:
    number = int(digits)
    if number > WORD_MAX:
        raise ProviderUnavailableError(f"{WHO} answers with a number that no chain can hold")
    return number
