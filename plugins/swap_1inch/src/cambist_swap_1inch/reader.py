"""Reads calls of AggregationRouterV6 ``swap``, and of nothing else.

::

    swap(address executor, SwapDescription desc, bytes data)      0x07ed2379
    SwapDescription: srcToken, dstToken, srcReceiver, dstReceiver, amount, minReturnAmount, flags

What the router does with it, as its verified source has it (GenericRouter, UniERC20, SafeERC20)::

    1  refuses minReturnAmount 0, and any value but amount where srcToken is native, 0 where it is a token
    2  moves amount of srcToken from the caller to srcReceiver, where it is a token
    3  calls execute(caller, data, amount) of the executor, with the value, and believes the number that it returns
    4  refuses a number below minReturnAmount
    5  moves that number of dstToken from itself to dstReceiver, or to the caller where that is zero; reverts where
       the token refuses, or where it holds too little

**Flags.** Bit 0, partial fill, lets what is left of srcToken come back and lowers the least output in proportion. Bit
1, extra ETH, lets the value be more than the amount. Bit 2, Permit2, takes the token through another spender. No other
bit is looked at. All of them are refused, the unknown ones included: what is read here has flags 0.

**The executor, its data and srcReceiver** are free, and have no power beyond what is told. Step 2 is all that the
router takes from the caller, and beside it only the value leaves, which is the amount. Tokens of the caller's are
allowed to pinned spenders alone, so the executor itself can take none; and the router calls it with one fixed selector,
so it cannot be made to call a token. Coming back into the router, the executor is its own caller, and gives what is its
own; other paths on which the router takes from somebody else want that one's signature, or a Uniswap pool that the
router called itself. So at most ``amount`` leaves, and all of it may be lost to srcReceiver. But then step 5 has to
succeed all the same: the least output comes from wherever the executor has it, or everything is undone. A hostile
executor is a bad price within what is told, and no more.

**What the router does not see**: a token that keeps a fee of what is transferred gives the recipient less than the
router sent. Such tokens are not to be registered. And whoever may sign a call for the router with an allowance from
before can take that, too: allowances are given exactly, for each swap.

**The platform's fee and its referrer** are in the executor's data, too, so that nothing here tells them: whoever sends
the call sees in a trial who gets how much.

**Other functions.** ``unoswap`` and its kin name pools, and no token that is bought: the pool's contract decides, in
what the least output is counted. They cannot be told without a node. ``clipperSwap`` pays what a pool signed for. Both
are refused, and the API is asked for calls of ``swap``.

**The tail.** 1inch marks whose key built a call by 4 bytes after its arguments. Nothing in the contract reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from cambist.plugin import Call, CallReader, ChainInfo, ExchangeEffects, Units, UnreadablePayloadError

from .addresses import ZERO, spell
from .codec import Codec
from .config import NATIVE, Routers

SWAP: Final = bytes.fromhex("07ed2379")
DATA_BYTES_MAX: Final = 131_072
"""Nodes take no larger transactions."""

TAIL_BYTES: Final = 4

_TYPES: Final = ("address", "(address,address,address,address,uint256,uint256,uint256)", "bytes")
_FLAGS: Final = {1: "a partial fill", 2: "more native coin than it sells", 4: "Permit2"}


class _Description(Struct, frozen=True):
    """The arguments that say what is swapped; addresses are normalized."""

    sold: str
    bought: str
    recipient: str
    amount: int
    amount_min: int
    flags: int


class OneInchReader(CallReader):
    """Understands ``swap`` of the pinned routers."""

    def __init__(self, routers: Routers, codec: Codec) -> None:
        self._routers = routers
        self._codec = codec

    def spenders(self, chain: ChainInfo) -> frozenset[str]:
        router = self._routers.of(chain)
        return frozenset() if router is None else frozenset({router})

    def read(
        self,
        chain: ChainInfo,
        sender: str,
        call: Call,
        chains: Mapping[str, ChainInfo],  # noqa: ARG002 - a swap stays on its chain
    ) -> ExchangeEffects | None:
        router = self._routers.of(chain)
        if router is None or call.to_address != router:
            return None
        swap = self._description(call.data)
        _check(swap)
        sold = _contract(chain, swap.sold, "sells")
        bought = _contract(chain, swap.bought, "buys")
        if sold == bought:
            raise UnreadablePayloadError("the call swaps a token for itself")
        if call.value != (swap.amount if sold is None else 0):
            raise UnreadablePayloadError("the call's value is not what it sells of native coin")
        return ExchangeEffects(
            sold_contract=sold,
            sold=Units(swap.amount),
            spender=None if sold is None else router,
            chain=chain.id,
            bought_contract=bought,
            bought_min=Units(swap.amount_min),
            recipient=sender if swap.recipient == ZERO else swap.recipient,
        )

    def _description(self, data: bytes) -> _Description:
        if data[:4] != SWAP:
            raise UnreadablePayloadError(f"the router's function {data[:4].hex() or '(none)'} is not one that is read")
        if len(data) > DATA_BYTES_MAX:
            raise UnreadablePayloadError("the call is longer than a transaction can be")
        try:
            values = self._codec.decode(_TYPES, data[4:])
            canonical = SWAP + self._codec.encode(_TYPES, values)
        except Exception as error:  # a library's: whatever it trips over cannot be read
            raise UnreadablePayloadError("the call is not what its function takes") from error
        if not data.startswith(canonical) or len(data) - len(canonical) not in {0, TAIL_BYTES}:
            raise UnreadablePayloadError("the call is not in canonical form")
        sold, bought, _, recipient, amount, amount_min, flags = values[1]
        return _Description(spell(sold), spell(bought), spell(recipient), amount, amount_min, flags)


def _check(swap: _Description) -> None:
    if swap.flags:
        known = [meaning for bit, meaning in _FLAGS.items() if swap.flags & bit]
        raise UnreadablePayloadError(f"the call's flags allow {', '.join(known) or 'something unknown'}")
    if not swap.amount:
        raise UnreadablePayloadError("the call sells nothing")
    if not swap.amount_min:
        raise UnreadablePayloadError("the call has no least output")


def _contract(chain: ChainInfo, address: str, does: str) -> str | None:
    """Return the token's contract, None for native coin. That the router takes zero for it, too, is of no use."""
    if address == NATIVE:
        return None
    if not any(token.contract == address for token in chain.tokens):
        raise UnreadablePayloadError(f"the call {does} {address}, which is no registered token of {chain.id}")
    return address
