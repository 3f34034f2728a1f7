"""What gas costs now, as the nodes tell it."""

from __future__ import annotations

from statistics import median_low
from typing import Any, Final, TypeVar

import msgspec

from cambist.plugin import ChainUnavailableError, InconsistentChainError
from cambist_chainkit.eip55 import keccak

from .config import ChainSetup
from .endpoint import Endpoint
from .fees import Market
from .quantities import quantity
from .wire import RpcFailure, RpcFeeHistory, RpcMarketHeader

T = TypeVar("T")

MARKET_TTL_S: Final = 1.0
"""So old the market may be."""
HISTORY_BLOCKS: Final = 10
HISTORY_PERCENTILE: Final = 50

# Where chains of the OP stack tell what a transaction's data costs on the chain below (Fjord's upper bound).
L1_FEE_ORACLE: Final = "0x420000000000000000000000000000000000000F"
_L1_FEE_CALL: Final = "0x" + keccak(b"getL1FeeUpperBound(uint256)")[:4].hex()
TX_BYTES_MAX: Final = 220


async def read_market(endpoint: Endpoint, setup: ChainSetup) -> Market:
    """Ask an endpoint for everything at once. What it does not offer, other answers make up for."""
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("eth_getBlockByNumber", ("latest", False)),
        ("eth_feeHistory", (hex(HISTORY_BLOCKS), "latest", (HISTORY_PERCENTILE,))),
        ("eth_maxPriorityFeePerGas", ()),
        ("eth_gasPrice", ()),
    ]
    if setup.l1_fee:
        oracle = {"to": L1_FEE_ORACLE, "data": f"{_L1_FEE_CALL}{TX_BYTES_MAX:064x}"}
        calls.append(("eth_call", (oracle, "latest")))
    answers = await endpoint.each(calls, Any)
    header = _decoded(answers[0], RpcMarketHeader)
    if header is None:
        raise ChainUnavailableError(f"{endpoint.name} does not tell what gas costs: it has no newest block")
    extra = _data_fee(endpoint, setup, answers[4]) if setup.l1_fee else 0
    if header.base_fee_per_gas is None:
        if setup.network.has_base_fee:
            # The whole of the node's price would be paid, as far as the ceiling goes.
            raise InconsistentChainError(f"{endpoint.name} tells no base fee, which all blocks of {endpoint.chain} do")
        price = _quantity(answers[3])
        if price is None:
            raise ChainUnavailableError(f"{endpoint.name} does not tell what gas costs")
        return Market(base_fee=None, tip=max(price, setup.fees.tip_min), data_fee=extra)
    history = _decoded(answers[1], RpcFeeHistory) or RpcFeeHistory()
    tip = _quantity(answers[2])
    if tip is None:
        tip = _usual_tip(history)
    return Market(
        base_fee=_next_base_fee(header.base_fee_per_gas, history),
        tip=min(max(tip, setup.fees.tip_min), setup.fees.tip_max),
        data_fee=extra,
    )


def _next_base_fee(newest: str, history: RpcFeeHistory) -> int:
    """Return the next block's base fee: as the node reckons it, else the most that EIP-1559 lets it become."""
    told = [fee for fee in map(_number, history.base_fee_per_gas) if fee is not None]
    now = _number(newest) or 0
    return max(told[-1], now) if told else now + -(-now // 8)


def _usual_tip(history: RpcFeeHistory) -> int:
    tips = [tip for block in history.reward or () for tip in map(_number, block[:1]) if tip]
    return median_low(tips) if tips else 0


def _data_fee(endpoint: Endpoint, setup: ChainSetup, answer: Any) -> int:  # noqa: ANN401 - JSON
    text = _decoded(answer, str)
    value = _number(text or "")
    if value is None:
        raise InconsistentChainError(f"{endpoint.name} does not tell what data costs: is {L1_FEE_ORACLE} there?")
    # Nothing else bounds it, and the gas station would bring the coin for it.
    if value > setup.fees.ceiling * setup.network.transfer_gas_max:
        message = f"{endpoint.name} tells that a transfer's data costs {value} wei: more than all its gas ever may"
        raise InconsistentChainError(message)
    # The chain below can grow dearer before the transaction is in.
    return value + value // 4


def _quantity(answer: Any) -> int | None:  # noqa: ANN401 - JSON
    return _number(_decoded(answer, str) or "")


def _number(text: str) -> int | None:
    try:
        return quantity(text)
    except InconsistentChainError:
        return None


def _decoded(answer: Any, type_: type[T]) -> T | None:  # noqa: ANN401 - JSON
    if answer is None or isinstance(answer, RpcFailure):
        return None
    try:
        return msgspec.convert(answer, type_)
    except msgspec.ValidationError:
        return None
