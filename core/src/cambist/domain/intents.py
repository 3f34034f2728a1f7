"""The kinds of intents, and what is true of each: the one place where a new kind is declared.

An intent is a transaction that the gateway wants to have on a chain. To add a kind, add it here, to the check
constraint of ``outbound_intents`` by a migration, and, where it needs a handler of its own, to
``cambist.services.intent_handlers``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from functools import partial
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from cambist.plugin import Action

from .usage import Operation


class IntentKind(StrEnum):
    """What an intent is for."""

    PAYOUT = "payout"
    REFUND = "refund"
    WITHDRAWAL = "withdrawal"
    AUTO_PAYOUT = "auto_payout"
    COLLECTION = "collection"
    SWEEP = "sweep"
    REPAIR = "repair"
    TOP_UP = "top_up"
    LOAN = "loan"
    LOAN_RETURN = "loan_return"
    STAKE = "stake"
    UNSTAKE = "unstake"
    WITHDRAW_STAKE = "withdraw_stake"
    APPROVAL = "approval"
    SWAP = "swap"
    BRIDGE = "bridge"


class AskedBy(StrEnum):
    """Who asked for an intent: a merchant in person, a program with an API key, the operator, or the gateway itself."""

    SESSION = "session"
    KEY = "key"
    OPERATOR = "operator"
    PLATFORM = "platform"


WAITS_FOR_TURN: Final = "turn"
"""Something of the same wallet is before it: a transfer that its balance does not show yet, or an exchange that uses
the allowance."""


class HandlerName(Enum):
    """Which handler gets the updates of an intent: see ``cambist.services.intent_handlers``."""

    PAYOUTS = auto()
    COLLECTIONS = auto()
    SWEEPS = auto()
    TOP_UPS = auto()
    STAKES = auto()
    APPROVALS = auto()
    EXCHANGES = auto()
    NONE = auto()


class KindFacts(Struct, frozen=True, kw_only=True):
    """What is true of every intent of a kind.

    ``is_internal``: nothing of it leaves the gateway's own addresses, so that its transfers are no deposits.
    ``spends_merchant_money``: its units were debited from a merchant's balance before it was queued.
    That counts to the operator's limits for merchants. ``is_delayed``: asked for by one person's credentials, so that
    the signer never sends it to a fresh address before its delay, however small it is. ``is_held_back``: not sent while
    its merchant is suspended; what only moves between addresses of ours goes on. ``metered_as``: the operation whose
    usage credits it costs; None is free. ``shown_as``: the kind of thing that a merchant knows it as; gas and the like
    is nobody's. ``action``: what its transaction does. ``is_for_its_moment``: what its transaction says is right now
    only, so that one which is stuck is given up and never replaced at a higher fee. ``carries_others``: its units count
    the intents that it carries out, and these have other ways where it fails. ``priority``: among the intents of one
    sender, lower goes first. What closes a gap in its nonces comes before all else, which waits behind the gap.
    """

    handler: HandlerName
    is_internal: bool = False
    spends_merchant_money: bool = False
    is_delayed: bool = False
    is_held_back: bool = False
    metered_as: Operation | None = None
    shown_as: str | None = None
    is_for_its_moment: bool = False
    carries_others: bool = False
    action: Action = "transfer"
    priority: int = 100


_merchants = partial(KindFacts, handler=HandlerName.PAYOUTS, spends_merchant_money=True, is_held_back=True)
_internal = partial(KindFacts, is_internal=True)
_exchange = partial(
    KindFacts,
    handler=HandlerName.EXCHANGES,
    action="call",
    shown_as="exchange",
    is_held_back=True,
    is_for_its_moment=True,
)

FACTS: Final[Mapping[IntentKind, KindFacts]] = MappingProxyType(
    {
        IntentKind.PAYOUT: _merchants(metered_as=Operation.PAYOUT, shown_as="payout"),
        IntentKind.REFUND: _merchants(metered_as=Operation.REFUND, shown_as="refund"),
        IntentKind.WITHDRAWAL: _merchants(metered_as=Operation.WITHDRAWAL, shown_as="withdrawal", is_delayed=True),
        IntentKind.AUTO_PAYOUT: _merchants(metered_as=Operation.PAYOUT, shown_as="payout", is_delayed=True),
        IntentKind.COLLECTION: _internal(
            handler=HandlerName.COLLECTIONS, metered_as=Operation.COLLECTION, shown_as="collection", priority=50
        ),
        IntentKind.SWEEP: _internal(handler=HandlerName.SWEEPS, is_for_its_moment=True, carries_others=True),
        IntentKind.REPAIR: _internal(handler=HandlerName.NONE, action="nothing", priority=0),
        IntentKind.TOP_UP: _internal(handler=HandlerName.TOP_UPS, priority=10),
        IntentKind.LOAN: _internal(handler=HandlerName.NONE, action="lend", priority=10),
        IntentKind.LOAN_RETURN: _internal(handler=HandlerName.NONE, action="reclaim", priority=10),
        IntentKind.STAKE: _internal(handler=HandlerName.STAKES, action="stake"),
        IntentKind.UNSTAKE: _internal(handler=HandlerName.STAKES, action="unstake"),
        IntentKind.WITHDRAW_STAKE: _internal(handler=HandlerName.STAKES, action="withdraw"),
        IntentKind.APPROVAL: _internal(handler=HandlerName.APPROVALS, action="approve", priority=40, is_held_back=True),
        IntentKind.SWAP: _exchange(metered_as=Operation.SWAP),
        IntentKind.BRIDGE: _exchange(metered_as=Operation.BRIDGE),
    }
)

INTERNAL: Final = frozenset(kind for kind, facts in FACTS.items() if facts.is_internal)
SPENDING: Final = frozenset(kind for kind, facts in FACTS.items() if facts.spends_merchant_money)
DELAYED: Final = frozenset(kind for kind, facts in FACTS.items() if facts.is_delayed)
EXCHANGING: Final = frozenset(kind for kind, facts in FACTS.items() if facts.handler is HandlerName.EXCHANGES)
CANCELLABLE: Final = SPENDING | EXCHANGING
"""Money of merchants that was set aside for somebody else: it can go back. All else is the gateway's own."""
HELD_BACK: Final = tuple(sorted(kind for kind, facts in FACTS.items() if facts.is_held_back))
STAKING: Final = tuple(kind for kind, facts in FACTS.items() if facts.handler is HandlerName.STAKES)
FOR_ITS_MOMENT: Final = frozenset(kind for kind, facts in FACTS.items() if facts.is_for_its_moment)
CARRIERS: Final = tuple(kind for kind, facts in FACTS.items() if facts.carries_others)
PAYOUTS: Final = tuple(kind for kind, facts in FACTS.items() if facts.shown_as == "payout")
"""What merchants know as payouts, whoever asked for them."""


def metered_as(kind: str) -> Operation:
    """Return the operation whose usage credits an intent of this kind costs. Raises ValueError for a free kind."""
    operation = FACTS[IntentKind(kind)].metered_as
    if operation is None:
        raise ValueError(f"a {kind} costs no usage credits")
    return operation
