"""Every error a plugin may raise, and what the gateway does about each.

::

    PluginError
    ├── ConfigError               the operator's table for this plugin is wrong: the start stops, naming it
    ├── InvalidAddressError       the text is no address of the family: the caller gets 400
    ├── ChainError                something about one chain; never touches another chain
    │   ├── ChainUnavailableError     nothing was learned: keep the cursor, back off, ask again
    │   │   ├── RateLimitedError      the same, and wait at least ``retry_after`` seconds
    │   │   └── StateUnavailableError the state at this height is not kept: the finalized height is asked for
    │   ├── InconsistentChainError    answers contradict each other (short, from another block, wrong
    │   │                             parent): nothing of the batch is used, another endpoint is asked
    │   ├── SpanTooWideError          a node refuses the span: the gateway halves it and asks again
    │   └── FeeAboveCeilingError      sending now costs more than the operator allows: what waits, waits on
    ├── SignatureError            a signature is not the sender's: nothing is stored, nothing is sent
    ├── UnreadablePayloadError    the family cannot say what a payload does: the signer does not sign it
    ├── UnreadableTokenError      a contract tells no symbol and decimals: it is not taken as a token
    ├── PriceUnavailableError     this source has no usable price now: other sources are asked
    └── ExchangeError             something about one provider of swaps or bridges; never touches another
        ├── ProviderUnavailableError  it says nothing now: others are asked, and what waits is asked for again, not
        │                             before ``retry_after`` seconds
        └── ExchangeRefusedError      it will not do this: the merchant gets 400 with the reason

Any other exception out of a plugin is a bug of the plugin. The gateway logs it with its traceback and treats
it as ``ChainUnavailableError`` for the chain at hand: nothing was learned, and nothing else is affected.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

RefusalReason: TypeAlias = Literal[
    "unsupported", "amount_too_low", "amount_too_high", "no_liquidity", "price_moved", "refused"
]
"""Why a provider will not do it. ``price_moved``: not at a price that is taken now, such as that of the least output
that was promised; it may be had again later.
"""


def _seconds(said: float) -> float:
    """Return a wait in seconds, 0 for what is none: a header's text, as it comes, may be a date or nothing at all."""
    try:
        seconds = float(said)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


class _AsksToWait(Exception):  # noqa: N818  an error that may ask for a wait is one of the contract's, below
    """``retry_after`` is a wait in seconds, whatever a plugin's own error below sets, and also where it sets none."""

    _retry_after = 0.0

    @property
    def retry_after(self) -> float:
        """How long to wait at least, in seconds; zero where nobody said."""
        return self._retry_after

    @retry_after.setter
    def retry_after(self, said: float) -> None:
        self._retry_after = _seconds(said)


class PluginError(Exception):
    """Root of the tree; catch it to handle anything a plugin reports on purpose."""


class ConfigError(PluginError):
    """The plugin's table in the operator's file is well-formed but means nothing.

    The start stops with this error's sentence, so name the setting and say what would be right.
    """


class InvalidAddressError(PluginError):
    """A text is not an address of the family, or carries a wrong checksum."""


class ChainError(PluginError):
    """Something went wrong while a chain was read."""


class ChainUnavailableError(ChainError):
    """Nothing was learned: no endpoint answered, or what answered is not the chain it should be."""


class RateLimitedError(_AsksToWait, ChainUnavailableError):
    """The endpoint asks to be left alone for a while.

    ``retry_after`` is in seconds; zero where the endpoint did not say.
    """

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StateUnavailableError(ChainUnavailableError):
    """What was so at this height cannot be told, or not any more; that endpoints keep little is no fault of theirs."""


class InconsistentChainError(ChainError):
    """Answers contradict each other or themselves; none of them may be used.

    An empty or short answer (fewer receipts than transactions) is this error, never an empty block.
    """


class SpanTooWideError(ChainError):
    """A node refuses to answer for so many blocks or results at once."""


class PriceUnavailableError(PluginError):
    """The source has no usable price for any of the symbols right now."""


class FeeAboveCeilingError(ChainError):
    """The chain asks for a higher fee than the operator's ceiling; nothing was prepared."""


class UnreadablePayloadError(PluginError):
    """A payload is not one that the family makes, or does more than can be told."""


class UnreadableTokenError(PluginError):
    """A contract is no token, or does not tell its symbol and its decimals. The text is a sentence for the operator."""


class SignatureError(PluginError):
    """A signature is none, or does not belong to the payload and its sender."""


class ExchangeError(PluginError):
    """Something went wrong between the gateway and one provider of swaps or bridges."""


class ProviderUnavailableError(_AsksToWait, ExchangeError):
    """The provider cannot be asked now: it is away, too slow, limits us, or what it says makes no sense.

    ``retry_after`` is in seconds; zero where it did not say.
    """

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ExchangeRefusedError(ExchangeError):
    """The provider has understood, and will not do it. The text is a sentence for the merchant.

    ``reason`` tells programs why.
    """

    _reason: RefusalReason = "refused"

    def __init__(self, message: str, *, reason: RefusalReason = "refused") -> None:
        super().__init__(message)
        self.reason = reason

    @property
    def reason(self) -> RefusalReason:
        """Why, in a word that programs know."""
        return self._reason

    @reason.setter
    def reason(self, said: RefusalReason) -> None:
        # What a server calls it is not for programs.
        self._reason = said if said in get_args(RefusalReason) else "refused"
