"""The bodies of 1inch's answers, in the shapes of versions 6.0 and 6.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from itertools import pairwise
from typing import Any
from uuid import uuid4

from .amm import Route, Token
from .asking import V6_0

Json = dict[str, Any]

UNISWAP = "UNISWAP_V2"
CALL_GAS, HOP_GAS = 150_000, 90_000


def refusal(description: str, meta: Mapping[str, str], status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> Json:
    """Return the body of a refusal."""
    return {
        "error": status.phrase,
        "description": description,
        "statusCode": status,
        "requestId": str(uuid4()),
        "meta": [{"type": name, "value": value} for name, value in meta.items()],
    }


def token(version: str, told: Token) -> Json:
    """Return what is told of a token."""
    address = told.address.lower()
    return {
        "address": address,
        "symbol": told.symbol,
        "name": told.name,
        "decimals": told.decimals,
        "logoURI": f"https://tokens.1inch.io/{address}.png",
        **({} if version == V6_0 else {"domainVersion": ""}),
        "eip2612": False,
        "isFoT": False,
        "tags": ["tokens"],
    }


def gas(route: Route) -> int:
    """Return about how much gas a swap takes."""
    return CALL_GAS + HOP_GAS * (len(route.path) - 1)


def protocols(version: str, path: Sequence[str]) -> Sequence[Any]:
    """Return the way through the pools."""
    hops = [(src.lower(), dst.lower()) for src, dst in pairwise(path)]
    if version == V6_0:
        return [[[{"name": UNISWAP, "part": 100, "fromTokenAddress": src, "toTokenAddress": dst}] for src, dst in hops]]
    return [
        {
            "token": src,
            "hops": [
                {
                    "part": 100,
                    "dst": dst,
                    "fromTokenId": number,
                    "toTokenId": number + 1,
                    "protocols": [{"name": UNISWAP, "part": 100}],
                }
            ],
        }
        for number, (src, dst) in enumerate(hops)
    ]
