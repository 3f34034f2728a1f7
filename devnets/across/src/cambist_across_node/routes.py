"""Which token of which chain a request is about, and the refusals of what is none, in Across's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct

from .fees import converted
from .side import WETH, Side, Token

_KINDS: Final = {
    "parsableBigNumberString": re.compile(r"[0-9]{1,78}", re.ASCII),
    "positiveIntStr": re.compile(r"[0-9]{1,18}", re.ASCII),
    "validAddress": re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII),
    "boolStr": re.compile(r"true|false", re.ASCII),
}
_PARAMS: Final = {
    "amount": "parsableBigNumberString",
    "token": "validAddress",
    "inputToken": "validAddress",
    "outputToken": "validAddress",
    "destinationChainId": "positiveIntStr",
    "originChainId": "positiveIntStr",
    "timestamp": "positiveIntStr",
    "skipAmountLimit": "boolStr",
    "recipient": "validAddress",
    "relayer": "validAddress",
    "allowUnmatchedDecimals": "boolStr",
}


class RefusedError(Exception):
    """The answer is a refusal, with this status and body."""

    def __init__(self, body: Mapping[str, Any], status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(body)
        self.body = body
        self.status = status


def refusal(code: str, message: str, param: str | None = None) -> RefusedError:
    """Return a refusal of the server that quotes."""
    body = {"type": "AcrossApiError", "code": code, "status": HTTPStatus.BAD_REQUEST.value, "message": message}
    return RefusedError(body if param is None else body | {"param": param})


class Route(Struct, frozen=True, kw_only=True):
    """From which token of which chain to which of the other."""

    origin: Side
    destination: Side
    taken: Token
    given: Token

    async def max_deposit(self) -> int:
        """Return the most that the relayer can pay out now, in units of the token that goes in."""
        stock = await self.destination.balance(self.destination.relayer, self.given.symbol)
        return converted(stock, self.given, self.taken)


def check(query: Mapping[str, str], *needed: str) -> None:
    """Raise RefusedError for a parameter that is malformed, or missing."""
    for name, kind in _PARAMS.items():
        if (name in query or name in needed) and not _KINDS[kind].fullmatch(query.get(name, "")):
            message = f"Invalid parameter at path '{name}'. Expected type '{kind}'"
            raise refusal("INVALID_PARAM", message, name)


def find_route(sides: Sequence[Side], query: Mapping[str, str]) -> Route:
    """Return the route that is asked about. Raises RefusedError."""
    if query.get("originChainId") == query["destinationChainId"]:
        raise refusal("INVALID_PARAM", "Origin and destination chains cannot be the same")
    if "token" not in query and not {"inputToken", "outputToken"} <= set(query):
        message = "Query param 'token' or 'inputToken' and 'outputToken' must be provided"
        raise refusal("MISSING_PARAM", message)
    origin, taken = _taken(sides, query)
    destination, given = _given(sides, query, taken)
    if taken.symbol != given.symbol or origin is destination:
        raise refusal("ROUTE_NOT_ENABLED", "Route is not enabled.")
    if taken.decimals != given.decimals and query.get("allowUnmatchedDecimals") != "true":
        message = "Decimals of input and output tokens do not match."
        raise refusal("INVALID_PARAM", message, "allowUnmatchedDecimals")
    return Route(origin=origin, destination=destination, taken=taken, given=given)


def _taken(sides: Sequence[Side], query: Mapping[str, str]) -> tuple[Side, Token]:
    address, number = query.get("token") or query["inputToken"], query.get("originChainId")
    found = [
        (side, token)
        for side in sides
        if number in {None, str(side.chain_id)} and (token := side.token_at(address)) is not None
    ]
    if not found:
        message = "Unsupported token address" if number is None else "Unsupported token on given origin chain"
        raise refusal("INVALID_PARAM", message, "inputTokenAddress")
    if len(found) > 1:
        message = "More than one route is enabled for the provided inputs causing ambiguity. "
        raise refusal("INVALID_PARAM", message + "Please specify the originChainId.", "inputTokenAddress")
    return found[0]


def _given(sides: Sequence[Side], query: Mapping[str, str], taken: Token) -> tuple[Side, Token]:
    for side in sides:
        if str(side.chain_id) == query["destinationChainId"]:
            address = query.get("outputToken")
            token = side.tokens.get(taken.symbol) if address is None else side.token_at(address)
            if token is not None:
                return side, token
    raise refusal("INVALID_PARAM", "Unsupported token address on given destination chain", "outputTokenAddress")


def rows(sides: Sequence[Side]) -> Sequence[Mapping[str, Any]]:
    """Return all routes as ``/available-routes`` tells them: ether has two, as itself and as WETH."""
    return [
        {
            "originChainId": origin.chain_id,
            "originToken": token.address,
            "destinationChainId": destination.chain_id,
            "destinationToken": destination.tokens[symbol].address,
            "originTokenSymbol": "ETH" if is_native else symbol,
            "destinationTokenSymbol": "ETH" if is_native else symbol,
            "isNative": is_native,
        }
        for origin, destination in (sides, sides[::-1])
        for symbol, token in origin.tokens.items()
        if symbol in destination.tokens
        for is_native in ([False, True] if symbol == WETH else [False])
    ]
