"""A proxy in front of a node that fails and lies on demand, in every way that providers do."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from random import Random
from typing import Any, Final, Self

import aiohttp
import msgspec
from aiohttp import web

from cambist_chainkit.eip55 import keccak

TRANSFER_TOPIC: Final = "0x" + keccak(b"Transfer(address,address,uint256)").hex()
HANG_S: Final = 60.0
DEEP_CALLS: Final = 20_000
BODY_BYTES_MAX: Final = 1 << 30

Call = dict[str, Any]
Answer = dict[str, Any]


class Fault(StrEnum):
    """What can go wrong. Those that lie do so without contradicting themselves where they can."""

    TIMEOUT = "timeout"
    RESET = "reset"
    HTTP_413 = "413"
    HTTP_429 = "429"
    HTTP_500 = "500"
    HTTP_503 = "503"
    HTML = "html"
    TRUNCATED = "truncated"
    WRONG_ID = "wrong id"
    DUPLICATED = "answer twice"
    RPC_ERROR = "internal error"
    RATE_LIMITED = "rate limit"
    TOO_WIDE = "too wide"
    NULL_BLOCK = "null block"
    NULL_RECEIPTS = "null receipts"
    EMPTY_RECEIPTS = "empty receipts"
    SHORT_RECEIPTS = "short receipts"
    OTHER_RECEIPTS = "receipts of another block"
    MISSING_LOG = "a log in the middle missing"
    HIDDEN_LOG = "the last log left out, traces covered"
    INVENTED_LOG = "a log more than there is"
    REMOVED_LOG = "logs marked as removed"
    WRONG_CHAIN_ID = "wrong chain id"
    HEAD_BACK = "head moves back"
    HEAD_FROZEN = "head frozen"
    OTHER_HASH = "another chain's hashes"
    NO_TRACES = "no traces"
    TRACES_COST = "no traces for who pays nothing"
    NO_DEBUG = "no debug traces"
    NO_FLAT = "no flat traces"
    NO_LONE_TRACES = "traces of whole blocks alone"
    SLOW_TRACES = "gives up tracing a transaction"
    DEEP_TRACES = "calls nested too deeply to decode"
    DEEP_LONE_TRACES = "calls nested too deeply to decode, of a transaction alone"
    NO_BLOCK_RECEIPTS = "no receipts by block"
    NO_SIMULATION = "tries one call at a time"
    SMALL_BATCHES = "takes three calls in a batch"
    SMALL_BATCHES_EACH = "takes three calls in a batch, and refuses each of more"
    LONE_CALLS = "takes no batch"
    BATCHES_429 = "HTTP 429 for any batch"
    ERRORS_AS_400 = "errors with HTTP status 400"
    NO_TIP_ADVICE = "no advice on tips"
    NO_FEE_ADVICE = "no advice on fees"
    NO_OVERRIDES = "no lent balances"
    FUNDS_FIRST = "estimates only what is funded"
    FORGETFUL = "takes transactions and forgets them"
    ANSWER_LOST = "does what it is asked, and its answer is lost"


_STATUS: Final = {Fault.HTTP_413: 413, Fault.HTTP_429: 429, Fault.HTTP_500: 500, Fault.HTTP_503: 503}
_BATCH_REFUSED: Final = (
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch of more than 3 requests: batch too large"}}'
)
_NO_BATCH: Final = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}'
_EACH_REFUSED: Final = "Batch of more than 3 requests are not allowed on free plan, to use this register paid account"
_LONE_TRACES: Final = ("debug_traceTransaction", "trace_transaction")
_NO_METHOD: Final = {
    Fault.NO_TRACES: ("debug_traceBlockByHash", "debug_traceTransaction", "trace_block", "trace_transaction"),
    Fault.NO_DEBUG: ("debug_traceBlockByHash", "debug_traceTransaction"),
    Fault.NO_FLAT: ("trace_block", "trace_transaction"),
    Fault.NO_LONE_TRACES: _LONE_TRACES,
    Fault.NO_BLOCK_RECEIPTS: ("eth_getBlockReceipts",),
    Fault.NO_SIMULATION: ("eth_simulateV1",),
    Fault.NO_TIP_ADVICE: ("eth_maxPriorityFeePerGas",),
    Fault.NO_FEE_ADVICE: ("eth_feeHistory", "eth_maxPriorityFeePerGas"),
}


class FaultyProxy:
    """Stands between the plugin and a node on a free loopback port. Honest until told otherwise.

    ``faults`` may be changed at any time; ``rate`` below 1 lets only that share of the requests fail, drawn from
    ``random``. ``latency_s`` slows every answer, ``slow_s`` those to a method. ``calls`` counts calls by method.
    ``invention`` is (contract, recipient, amount) for ``INVENTED_LOG``; ``back_blocks`` is for ``HEAD_BACK``.
    ``lies`` change the results of single calls, by method; ``refusals`` say of each call of a method whether it is
    refused, as by one of several nodes that does not offer it. ``upstream`` is the node's address.
    """

    def __init__(self, upstream: str, *faults: Fault, random: Random | None = None) -> None:
        self.faults = set(faults)
        self.rate = 1.0
        self.random = random or Random(0)
        self.latency_s = 0.0
        self.slow_s: dict[str, float] = {}
        self.retry_after: str | None = None
        self.calls: Counter[str] = Counter()
        self.requests = 0
        self.invention: tuple[str, str, int] | None = None
        self.back_blocks = 3
        self.lies: dict[str, Callable[[Any], Any]] = {}
        self.refusals: dict[str, Callable[[], bool]] = {}
        self.url = ""
        self.upstream = upstream
        self._frozen: int | None = None
        self._closing = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_post("/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop, and let go of requests that hang."""
        self._closing.set()
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = msgspec.json.decode(body)
        calls: list[Call] = asked if isinstance(asked, list) else [asked]
        self.requests += 1
        self.calls.update(call["method"] for call in calls)
        faults = set(self.faults) if self.rate >= 1 or self.random.random() < self.rate else set()
        if delay_s := max(self.latency_s, *(self.slow_s.get(call["method"], 0.0) for call in calls)):
            await asyncio.sleep(delay_s)
        broken = await self._transport(faults, request)
        if broken is not None:
            return broken
        if Fault.SMALL_BATCHES in faults and len(calls) > 3:
            return web.Response(text=_BATCH_REFUSED, content_type="application/json")
        if Fault.SMALL_BATCHES_EACH in faults and len(calls) > 3:
            each = [{"id": one["id"], "error": {"code": 31, "message": _EACH_REFUSED}} for one in calls]
            return web.json_response(each, status=500)
        if isinstance(asked, list) and faults & {Fault.LONE_CALLS, Fault.BATCHES_429}:
            status, said = (200, _NO_BATCH) if Fault.LONE_CALLS in faults else (429, "")
            return web.Response(status=status, text=said, content_type="application/json")
        answers = await self._ask(self._rewritten(calls, faults))
        if Fault.ANSWER_LOST in faults and request.transport is not None:
            request.transport.abort()
            return web.Response(status=500)
        for call, answer in zip(calls, answers, strict=True):
            self._spoil(faults, call, answer)
        if Fault.DUPLICATED in faults:
            answers.append(answers[0])
        text = msgspec.json.encode(answers if isinstance(asked, list) or len(answers) > 1 else answers[0])
        if Fault.TRUNCATED in faults:
            text = text[: len(text) * 2 // 3]
        failed = Fault.ERRORS_AS_400 in faults and any("error" in answer for answer in answers)
        return web.Response(status=400 if failed else 200, body=text, content_type="application/json")

    async def _transport(self, faults: set[Fault], request: web.Request) -> web.StreamResponse | None:
        if Fault.TIMEOUT in faults:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), HANG_S)
            return web.Response(status=504)
        if Fault.RESET in faults:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        if Fault.HTML in faults:
            return web.Response(text="<html><body>Checking your browser</body></html>", content_type="text/html")
        for fault, status in _STATUS.items():
            if fault in faults:
                headers = {"Retry-After": self.retry_after} if self.retry_after else {}
                return web.Response(status=status, text="no", headers=headers)
        return None

    def _rewritten(self, calls: list[Call], faults: set[Fault]) -> list[Call]:
        if Fault.FORGETFUL in faults:
            calls = [_forgotten(call) for call in calls]
        if Fault.HEAD_FROZEN not in faults or self._frozen is None:
            return calls
        return [_asking_for(call, hex(self._frozen)) for call in calls]

    async def _ask(self, calls: list[Call]) -> list[Answer]:
        async with self._session.post(self.upstream, json=calls) as response:
            answers: list[Answer] = await response.json(content_type=None)
        by_id = {answer["id"]: answer for answer in answers}
        return [by_id[call["id"]] for call in calls]

    def _spoil(self, faults: set[Fault], call: Call, answer: Answer) -> None:
        method = call["method"]
        _refuse_some(faults, method, answer)
        if method in self.refusals and self.refusals[method]():
            _refuse(answer, -32601, f"the method {method} does not exist/is not available")
        if method == "eth_estimateGas":
            _refuse_estimate(faults, call["params"], answer)
        if method in self.lies and "result" in answer:
            answer["result"] = self.lies[method](answer["result"])
        if Fault.WRONG_ID in faults:
            answer["id"] = 10**9
        if Fault.WRONG_CHAIN_ID in faults and method == "eth_chainId":
            answer["result"] = "0x3e7"
        if method == "debug_traceBlockByHash" and Fault.DEEP_TRACES in faults:
            answer["result"] = msgspec.Raw(b'[{"result":%b}]' % _deep_trace())
        if method == "debug_traceTransaction" and Fault.DEEP_LONE_TRACES in faults:
            answer["result"] = _deep_trace()
        if method == "eth_getBlockByNumber" and answer.get("result"):
            self._spoil_block(faults, call, answer)
        if method == "eth_getBlockReceipts" and answer.get("result") is not None:
            self._spoil_receipts(faults, answer)

    def _spoil_block(self, faults: set[Fault], call: Call, answer: Answer) -> None:
        block = answer["result"]
        latest = call["params"][0] == "latest"
        if latest and Fault.HEAD_FROZEN not in faults:
            self._frozen = int(block["number"], 16)
        if latest and Fault.HEAD_BACK in faults:
            block["number"] = hex(max(int(block["number"], 16) - self.back_blocks, 0))
        if Fault.OTHER_HASH in faults:
            block["hash"], block["parentHash"] = _mangled(block["hash"]), _mangled(block["parentHash"])
        if Fault.NULL_BLOCK in faults and not latest:
            answer["result"] = None

    def _spoil_receipts(self, faults: set[Fault], answer: Answer) -> None:
        receipts = answer["result"]
        if Fault.NULL_RECEIPTS in faults:
            answer["result"] = None
        elif Fault.EMPTY_RECEIPTS in faults:
            answer["result"] = []
        elif Fault.SHORT_RECEIPTS in faults:
            answer["result"] = receipts[:-1]
        for receipt in receipts:
            if Fault.OTHER_RECEIPTS in faults or Fault.OTHER_HASH in faults:
                receipt["blockHash"] = _mangled(receipt["blockHash"])
            if Fault.REMOVED_LOG in faults:
                for log in receipt["logs"]:
                    log["removed"] = True
        _spoil_logs(faults, receipts, self.invention)


def _spoil_logs(faults: set[Fault], receipts: list[Any], invention: tuple[str, str, int] | None) -> None:
    logged = [receipt for receipt in receipts if receipt["logs"]]
    if Fault.MISSING_LOG in faults and logged:
        del logged[0]["logs"][0]
    if Fault.HIDDEN_LOG in faults and logged:
        logged[-1]["logs"].pop()
        logged[-1]["logsBloom"] = "0x" + "0" * 512
    if Fault.INVENTED_LOG in faults and receipts and invention is not None:
        contract, recipient, amount = invention
        count = sum(len(receipt["logs"]) for receipt in receipts)
        log = {
            "address": contract.lower(),
            "topics": [TRANSFER_TOPIC, "0x" + "0" * 24 + "ab" * 20, "0x" + "0" * 24 + recipient[2:].lower()],
            "data": f"0x{amount:064x}",
            "logIndex": hex(count),
            "transactionHash": receipts[-1]["transactionHash"],
            "removed": False,
        }
        receipts[-1]["logs"].append(log)
        receipts[-1]["logsBloom"] = "0x" + "0" * 512


def _asking_for(call: Call, height: str) -> Call:
    params = call["params"]
    if call["method"] == "eth_getBlockByNumber" and params[0] == "latest":
        return {**call, "params": [height, *params[1:]]}
    return call


def _forgotten(call: Call) -> Call:
    """Ask for the transaction's id, which is its hash, instead of sending it."""
    if call["method"] != "eth_sendRawTransaction":
        return call
    return {**call, "method": "web3_sha3"}


def _refuse_estimate(faults: set[Fault], params: list[Any], answer: Answer) -> None:
    lent = len(params) > 2
    if Fault.NO_OVERRIDES in faults and lent:
        _refuse(answer, -32602, "too many arguments, want at most 2")
    elif Fault.FUNDS_FIRST in faults and int(params[0].get("value", "0x0"), 16) and not lent:
        _refuse(answer, -32000, "insufficient funds for gas * price + value")


def _refuse_some(faults: set[Fault], method: str, answer: Answer) -> None:
    for fault, methods in _NO_METHOD.items():
        if fault in faults and method in methods:
            _refuse(answer, -32601, f"the method {method} does not exist/is not available")
    if Fault.TRACES_COST in faults and method in _NO_METHOD[Fault.NO_TRACES]:
        _refuse(answer, -32600, f"{method} is not available on the Free tier - upgrade to Pay As You Go for access.")
    if Fault.RPC_ERROR in faults:
        _refuse(answer, -32603, "internal error at https://node/v3/sECRETkEY0123456789")
    if Fault.RATE_LIMITED in faults:
        _refuse(answer, -32005, "daily request count exceeded, request rate limited")
    if Fault.SLOW_TRACES in faults and method in _LONE_TRACES:
        _refuse(answer, -32000, "execution timeout")
    if Fault.TOO_WIDE in faults and method in {"eth_getBlockReceipts", "eth_getLogs"}:
        _refuse(answer, -32000, "response size exceeded 10 MB")


def _deep_trace() -> msgspec.Raw:
    return msgspec.Raw(b"%b%b" % (b'{"type":"CALL","calls":[' * DEEP_CALLS, b"]}" * DEEP_CALLS))


def _refuse(answer: Answer, code: int, message: str) -> None:
    answer.pop("result", None)
    answer["error"] = {"code": code, "message": message}


def _mangled(word: str) -> str:
    return "0x" + keccak(bytes.fromhex(word[2:])).hex()
