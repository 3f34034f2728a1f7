"""What can go wrong between a client and a node, on demand: every way of failing and lying that providers have shown.

``Faults`` belongs to one address of the node and interferes with what is asked there. A ``Face`` is another address of
the same node, with faults of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from random import Random
from typing import Any, Final, Self

import msgspec
from aiohttp import web
from google.protobuf.message import DecodeError

from .asking import Answer
from .chain import Chain
from .http import Server
from .transactions import Transaction

HANG_S: Final = 60.0
BACK_BLOCKS: Final = 3
LAG_BLOCKS: Final = 40


class Fault(StrEnum):
    """What can go wrong. Those that lie do so without contradicting themselves where they can."""

    TIMEOUT = "timeout"
    RESET = "reset"
    HTTP_403 = "daily usage exceeded"
    HTTP_429 = "429"
    HTTP_500 = "500"
    HTTP_503 = "503"
    HTML = "html"
    TRUNCATED = "truncated"
    RATE_LIMITED = "rate limit in the body"
    LITE_NODE = "a lite node without history"
    NO_BLOCK = "no block where there is one"
    OTHER_BLOCK = "the block below the one asked for"
    NO_INFOS = "no infos of a block that has some"
    EMPTY_INFOS = "an empty list of infos"
    SHORT_INFOS = "the last info left out"
    OTHER_INFOS = "infos of the block below"
    OTHER_FORK = "another fork's hashes"
    HEAD_BACK = "head moves back"
    HEAD_FROZEN = "head frozen"
    LAGGING = "far behind"
    NO_ESTIMATES = "estimates disabled"
    SERVER_BUSY = "too busy for transactions"
    FORGETFUL = "takes transactions and forgets them"
    ANSWER_LOST = "does what it is asked, and its answer is lost"


class Rule(msgspec.Struct):
    """A fault for some requests: those of these paths, so many of them, or a share of them."""

    fault: Fault
    paths: frozenset[str]
    times: int | None
    share: float


_DAY_IS_OVER: Final = "Exceed the user daily usage (100000), the maximum query frequency is 5 per second"
_TOO_OFTEN: Final = "The key exceeds the frequency limit(15), and the query server is suspended for 5s"
_STATUS: Final[Mapping[Fault, tuple[int, str]]] = {
    Fault.HTTP_403: (403, f'{{"Success":false,"Error":"{_DAY_IS_OVER}"}}'),
    Fault.HTTP_429: (429, f'{{"Error":"{_TOO_OFTEN}"}}'),
    Fault.HTTP_500: (500, "Internal Server Error"),
    Fault.HTTP_503: (503, "upstream connect error or disconnect/reset before headers"),
}
_LITE_NODE: Final = "this API is closed because this node is a lite fullnode"
_OF_HISTORY: Final = frozenset(
    "getblockbynum getblockbyid getblockbylimitnext getblockbylatestnum getblock gettransactionbyid"
    " gettransactioninfobyid gettransactioninfobyblocknum".split()
)
_TELLING_HEADS: Final = frozenset({"getnowblock", "getnodeinfo"})
_BROADCASTS: Final = frozenset({"broadcasttransaction", "broadcasthex"})
_NO_BLOCKS: Final = frozenset({"getblockbynum", "getblockbyid", "getblockbylimitnext", "getblock"})
_INFOS: Final = "gettransactioninfobyblocknum"
_HASH_FIELDS: Final = frozenset({"blockID", "parentHash"})
_NAMED: Final = frozenset({"block", "solidityBlock"})
_NUMBER_DIGITS: Final = 16
_STRUCK: Final = web.RequestKey("struck", frozenset[Fault])


class Faults:
    """The faults of one address of the node. Honest until told otherwise.

    ``faults`` meet every request, or only the share ``rate`` of them; ``add`` is for less. ``hidden`` transactions are
    told of in their blocks alone. ``latency_s`` slows every answer; ``lag_blocks`` keeps this address behind others.
    """

    def __init__(self, *faults: Fault, random: Random | None = None) -> None:
        self.faults = set(faults)
        self.rate = 1.0
        self.latency_s = 0.0
        self.lag_blocks = 0
        self.hidden: set[str] = set()
        self._rules: list[Rule] = []
        self._random = random or Random(0)
        self._frozen: int | None = None
        self._closing = asyncio.Event()

    def add(self, fault: Fault, *paths: str, times: int | None = None, share: float = 1.0) -> None:
        """Let a fault meet requests of these paths (all by default), so many times, or a share of them.

        A path is written "getnowblock", or "walletsolidity/getnowblock" where only one side is meant.
        """
        self._rules.append(Rule(fault, frozenset(paths), times, share))

    def clear(self) -> None:
        """Be honest again."""
        self.faults.clear()
        self._rules.clear()
        self.hidden.clear()
        self.rate, self.latency_s, self.lag_blocks = 1.0, 0.0, 0

    def close(self) -> None:
        """Let go of requests that hang."""
        self._closing.set()

    # --- Interference ---

    async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
        """Return an answer instead of the node's, before it has done anything, or None. May change ``body``."""
        struck = self._strike(path)
        request[_STRUCK] = struck
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        if Fault.TIMEOUT in struck:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), HANG_S)
            return web.Response(status=504)
        if Fault.RESET in struck:
            return _hang_up(request)
        _, _, name = path.rpartition("/")
        if _below(name, struck) and "num" in body:
            body["num"] = int(body["num"]) - 1
        return _instead(name, struck, body)

    def lag(self, request: web.Request, head: int) -> int:
        """Return how many of the newest blocks the answer to this request does not know of."""
        struck = request.get(_STRUCK, frozenset[Fault]())
        if Fault.HEAD_FROZEN not in struck:
            self._frozen = head
        frozen = 0 if self._frozen is None else head - self._frozen
        back = BACK_BLOCKS if Fault.HEAD_BACK in struck and request.match_info["path"] in _TELLING_HEADS else 0
        far = LAG_BLOCKS if Fault.LAGGING in struck else 0
        return min(self.lag_blocks + frozen + back + far, head)

    async def after(self, path: str, answer: Answer, request: web.Request) -> Answer:
        """Return the answer, as JSON or a response, spoiled or lost after the node did what it was asked."""
        struck = request.get(_STRUCK, frozenset[Fault]())
        if Fault.ANSWER_LOST in struck:
            return _hang_up(request)
        if Fault.SHORT_INFOS in struck and path.endswith(_INFOS) and isinstance(answer, list):
            answer = answer[:-1]
        if Fault.OTHER_FORK in struck:
            answer = _of_another_fork(answer)
        if Fault.TRUNCATED in struck:
            text = msgspec.json.encode(answer)
            return web.Response(body=text[: len(text) * 2 // 3], content_type="application/json")
        return answer

    def _strike(self, path: str) -> frozenset[Fault]:
        """Return what meets a request."""
        struck = set(self.faults) if self.rate >= 1 or self._random.random() < self.rate else set()
        for rule in self._rules:
            if rule.paths and not rule.paths & {path, path.rpartition("/")[2]}:
                continue
            if rule.times == 0 or (rule.share < 1 and self._random.random() >= rule.share):
                continue
            if rule.times is not None:
                rule.times -= 1
            struck.add(rule.fault)
        return frozenset(struck)


class Face(Faults):
    """Another address of a node; ``async with`` opens it."""

    def __init__(self, chain: Chain, *faults: Fault, random: Random | None = None) -> None:
        super().__init__(*faults, random=random)
        self._server = Server(chain, self, port=0)

    async def __aenter__(self) -> Self:
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await self._server.stop()

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def calls(self) -> Counter[str]:
        return self._server.calls


def _instead(name: str, struck: frozenset[Fault], body: Mapping[str, Any]) -> web.StreamResponse | None:
    for fault, (status, text) in _STATUS.items():
        if fault in struck:
            return web.Response(status=status, text=text, content_type="application/json")
    if Fault.HTML in struck:
        return web.Response(text="<html><body>Checking your browser</body></html>", content_type="text/html")
    if Fault.LITE_NODE in struck and name in _OF_HISTORY:
        return web.Response(text=_LITE_NODE)
    answer = _other_answer(name, struck, body)
    return None if answer is None else web.json_response(answer)


def _other_answer(name: str, struck: frozenset[Fault], body: Mapping[str, Any]) -> Answer | None:
    if Fault.RATE_LIMITED in struck:
        return {"Error": "class java.lang.IllegalAccessException : lack of computing resources"}
    if Fault.NO_ESTIMATES in struck and name == "estimateenergy":
        words = "this node does not support estimate energy"
        return {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": words.encode().hex()}}
    if name in _BROADCASTS and Fault.SERVER_BUSY in struck:
        return {"code": "SERVER_BUSY", "txid": _tx_id(body), "message": b"Server busy.".hex()}
    if name in _BROADCASTS and Fault.FORGETFUL in struck:
        return {"result": True, "txid": _tx_id(body)}
    if (Fault.NO_BLOCK in struck and name in _NO_BLOCKS) or (Fault.NO_INFOS in struck and name == _INFOS):
        return {}
    if Fault.EMPTY_INFOS in struck and name == _INFOS:
        return []
    return None


def _tx_id(body: Mapping[str, Any]) -> str:
    """Return the id of the transaction that a request broadcasts."""
    try:
        if "transaction" in body:
            return Transaction.parse(bytes.fromhex(str(body["transaction"]))).id.hex()
        return Transaction.from_json(body, visible=bool(body.get("visible"))).id.hex()
    except (DecodeError, ValueError):
        return ""


def _below(name: str, struck: frozenset[Fault]) -> bool:
    """Tell whether the node is asked for the block below."""
    return (Fault.OTHER_BLOCK in struck and name == "getblockbynum") or (Fault.OTHER_INFOS in struck and name == _INFOS)


def _of_another_fork(answer: Answer) -> Answer:
    if isinstance(answer, list):
        return [_of_another_fork(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    return {
        key: _mangled(value) if key in _HASH_FIELDS else _renamed(value) if key in _NAMED else _of_another_fork(value)
        for key, value in answer.items()
    }


def _renamed(named: Answer) -> Answer:
    """Change the id in "Num:1,ID:00..", as a node tells of itself."""
    if not isinstance(named, str):
        return _of_another_fork(named)
    number, separator, block_id = named.partition(",ID:")
    return number + separator + _mangled(block_id)


def _mangled(block_id: str) -> str:
    """Return another id for a block of the same number."""
    return block_id[:_NUMBER_DIGITS] + hashlib.sha256(block_id.encode()).hexdigest()[_NUMBER_DIGITS:]


def _hang_up(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)
