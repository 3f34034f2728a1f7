"""What providers' many refusals come to, in the words they use."""

from __future__ import annotations

import pytest

from cambist.plugin import ChainUnavailableError, RateLimitedError, SpanTooWideError, StateUnavailableError
from cambist_chainkit.answers import TooLongError, UnsupportedError
from cambist_evm.rpc import BatchRefusedError, from_answer
from cambist_evm.wire import RpcFailure


@pytest.mark.parametrize(
    "code, text, error",
    [
        (-32005, "query returned more than 10000 results", SpanTooWideError),
        (
            -32602,
            "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range",
            TooLongError,
        ),
        (-32000, "block range is too large", TooLongError),
        (-32000, "query timeout exceeded", SpanTooWideError),
        (-32000, "execution timeout", SpanTooWideError),
        (-32000, "query timeout, block range too large", SpanTooWideError),
        (-32000, "batch response too large", TooLongError),
        (-32600, "batch size too large", BatchRefusedError),
        (31, "Batch of more than 3 requests are not allowed on free plan, to use this feature", BatchRefusedError),
        (-32014, "too many RPC calls in batch request", BatchRefusedError),
        (-32005, "method eth_getBlockByNumber in batch triggered rate limit", BatchRefusedError),
        (-32005, "Batch requests are not supported", BatchRefusedError),
        (-32000, "The batch request was too large", BatchRefusedError),
        (-32005, "daily request count exceeded, request rate limited", RateLimitedError),
        (-32005, "limit", RateLimitedError),
        (429, "Your app has exceeded its compute units per second capacity", RateLimitedError),
        (-32007, "50/second request limit reached", RateLimitedError),
        (-32005, "You have reached your monthly limit. Upgrade your plan.", RateLimitedError),
        (-32601, "Method not found", UnsupportedError),
        (-32000, "method: 'debug_traceBlockByHash' is not whitelisted", UnsupportedError),
        (-32601, "the method debug_traceBlockByHash does not exist/is not available", UnsupportedError),
        (
            -32600,
            "debug_traceBlockByHash is not available on the Free tier - upgrade to a paid plan",
            UnsupportedError,
        ),
        (
            -32600,
            "debug_traceBlockByHash is not available on the Free tier - upgrade to Pay As You Go, or Enterprise.",
            UnsupportedError,
        ),
        (
            -32600,
            "trace_block is not available on the BASE_MAINNET. For more information see our docs",
            UnsupportedError,
        ),
        (-32053, "API key is not allowed to access method", UnsupportedError),
        (0, "message: API key is not allowed to access method, json-rpc code: -32053", UnsupportedError),
        (-32000, "header not found", ChainUnavailableError),
        (-32000, "missing trie node 4b1c (path ) state 0x4b1c is not available, not found", StateUnavailableError),
        (-32000, "historical state 4b1c is not available", StateUnavailableError),
        (4444, "state at block #17 is pruned", StateUnavailableError),
        (-32002, "project ID does not have access to archive state", StateUnavailableError),
        (-32602, "Archive requests require a personal token", StateUnavailableError),
        (-32000, "Archive requests are not available on your plan, upgrade your plan", StateUnavailableError),
        (-32603, "internal error", ChainUnavailableError),
    ],
)
def test_a_refusal_is_the_error_it_means(code: int, text: str, error: type[Exception]) -> None:
    """The text decides where it says something."""
    assert type(from_answer("node", "eth_call", RpcFailure(code, text))) is error


@pytest.mark.parametrize(
    "code, text",
    [
        (-32602, "Maximum allowed number of requested blocks is 1000"),
        (-32000, "please limit the query to at most 1000 blocks"),
        (-32000, "query must be smaller than size 1024"),
        (-32000, "maximum [from, to] blocks distance: 1000"),
        (-32000, "eth_getLogs is limited to 1024 block"),
        (-32614, "eth_getLogs is limited to a 10,000 range"),
        (-32600, "block range is too wide"),
        (-32062, "Block range is too large"),
        (35, "ranges over 10000 blocks are not supported on freetier"),
        (-32000, "logs matched by query exceeds limit of 10000"),
        (30, "Request timeout on the free tier, please upgrade your tier to the paid one"),
        (-32002, "request timed out"),
    ],
)
def test_logs_of_fewer_blocks_are_asked_for_however_it_is_said_that_they_are_too_many(code: int, text: str) -> None:
    """Nobody who looks for a log would find it otherwise."""
    assert isinstance(from_answer("node", "eth_getLogs", RpcFailure(code, text)), SpanTooWideError)


@pytest.mark.parametrize(
    "code, text, error",
    [
        (-32602, "block range extends beyond current head block", ChainUnavailableError),
        (-32602, "block range extends beyond current head block: requested 17, head 16", ChainUnavailableError),
        (-32000, "One of the blocks specified in filter (fromBlock, toBlock) cannot be found.", ChainUnavailableError),
        (-32005, "limit exceeded", RateLimitedError),
        (-32016, "over rate limit", RateLimitedError),
        (-32000, "header not found", ChainUnavailableError),
    ],
)
def test_what_fewer_blocks_do_not_help_against_is_no_reason_to_ask_for_them(
    code: int, text: str, error: type[Exception]
) -> None:
    """As where a node is late."""
    assert type(from_answer("node", "eth_getLogs", RpcFailure(code, text))) is error


def test_a_block_that_cannot_be_traced_any_more_counts_against_the_endpoint() -> None:
    """Of a balance of the past, no endpoint is to blame; whoever cannot read a block must not be asked for it again."""
    error = from_answer("node", "debug_traceBlockByHash", RpcFailure(-32000, "missing trie node 4b1c"))
    assert type(error) is ChainUnavailableError


def test_traces_that_a_plan_does_not_include_are_not_offered() -> None:
    """Of a balance, the same words say that it is too old."""
    refused = RpcFailure(-32002, "Archive, Debug and Trace requests are not available on your current plan.")
    assert type(from_answer("node", "debug_traceBlockByHash", refused)) is UnsupportedError
    assert type(from_answer("node", "eth_getBalance", refused)) is StateUnavailableError


@pytest.mark.parametrize(
    "text",
    [
        "required historical state unavailable (reexec=128)",
        "the block is not available",
        "method debug_traceBlockByHash: header not found",
        "method timed out; service is not responding",
        "the method debug_traceBlockByHash failed: the node is not ready",
        "debug_traceBlockByHash is unavailable, try again later",
        "Your monthly allowance is exhausted. Please upgrade your plan.",
        "You have reached your monthly limit. Upgrade your plan.",
    ],
)
def test_one_block_that_is_not_traced_does_not_say_that_none_is(text: str) -> None:
    """Nobody would look into transactions for minutes."""
    assert type(from_answer("node", "debug_traceBlockByHash", RpcFailure(-32000, text))) is ChainUnavailableError


def test_a_long_message_is_cut() -> None:
    """Some nodes answer with the whole request."""
    assert len(str(from_answer("node", "eth_call", RpcFailure(0, "x" * 10_000)))) < 300
