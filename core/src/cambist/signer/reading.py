"""Finds out what a payload does, and whose money it moves. Whoever asks for the signature is not asked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import structlog
from msgspec import Struct, structs

from cambist.domain.branches import BRANCHES, WALLET_BRANCH
from cambist.domain.destinations import destination, normalized
from cambist.plugin import AddressFamily, Allowance, ChainInfo, Effects, Movement, Staking, UnreadablePayloadError

from .exchanges import ExchangeReader
from .keystore import MODES, Keystore
from .outflows import Outflow, Recipient, Refusal, in_words
from .protocol import OWN_PATHS_MAX, PAYLOAD_BYTES_MAX, KeyPath, SignRequest
from .rules import asset_name

PLATFORM_ACCOUNT = 0
CACHED_XPUBS_MAX = 4_096
CACHED_ADDRESSES_MAX = 65_536
DIGEST_BYTES = 32
PATH_END = 2**31
TEXT_CHARS_MAX = 128

log = structlog.get_logger(__name__)


class Reading(Struct, frozen=True, kw_only=True):
    """A payload, read. At most one payload of a slot can ever take effect on the chain.

    ``slot`` is ``<chain>/<address>/<sequence>``, or without sequences ``<chain>/<address>/#<tx id>@<valid until>``.
    """

    request: SignRequest
    coin_type: int
    slot: str
    digest: bytes
    outflows: tuple[Outflow, ...]
    fee_max: int
    delegate: str | None
    allowance: Allowance | None = None


class Reader:
    """Reads requests with the operator's own list of chains and keys derived here."""

    def __init__(
        self,
        keystore: Keystore,
        families: Mapping[str, AddressFamily],
        chains: Mapping[str, ChainInfo],
        exchanges: ExchangeReader | None = None,
    ) -> None:
        """Without ``exchanges``, nothing is called, and no allowance is given: one can only be taken back."""
        self._families = families
        self._chains = self.chains = chains
        self._exchanges = exchanges or ExchangeReader((), chains, {})
        account_xpub = lru_cache(maxsize=CACHED_XPUBS_MAX)(keystore.account_xpub)

        @lru_cache(maxsize=CACHED_ADDRESSES_MAX)
        def address(mode: str, family: str, path: KeyPath) -> str:
            found = families[family]
            return found.derive_address(account_xpub(mode, found.coin_type, path.account), path.change, path.index)

        self._address = address

    def read(self, request: SignRequest) -> Reading | Refusal:
        """Return what signing the request would do, or why it is not signed whatever the rules are."""
        chain = self._chains.get(request.chain)
        if chain is None or request.mode not in MODES or (request.mode == "live" and chain.availability != "live"):
            return Refusal("UNKNOWN_CHAIN", f"There is no chain {request.chain[:64]!r} in mode {request.mode[:16]!r}.")
        if not _is_sound(request):
            return Refusal("BAD_REQUEST", "A path or a size of the request is out of bounds.")
        family = self._families[chain.family]
        try:
            effects, digest = family.effects(chain, request.payload), family.digest(request.payload)
        except UnreadablePayloadError as error:
            return Refusal("UNREADABLE_PAYLOAD", f"The payload cannot be read: {error}.")
        except Exception as error:  # whatever a plugin trips over, it has not read the payload
            log.exception("payload_not_read", chain=chain.id)
            return Refusal("UNREADABLE_PAYLOAD", f"The payload cannot be read: {type(error).__name__}.")
        if len(digest) != DIGEST_BYTES or effects.fee_max < 0 or any(move.amount < 0 for move in effects.movements):
            return Refusal("UNREADABLE_PAYLOAD", "The payload was read as something that no payload can be.")
        if not all(_has_sound_tag(family, move) for move in effects.movements):
            return Refusal("UNREADABLE_PAYLOAD", "The payload has a tag that is none.")
        return self._resolve_owners(request, chain, family, effects, digest)

    def check_live(self, chain_id: str, mode: str) -> None:
        """Raise ValueError for what is not a chain with real money."""
        chain = self._chains.get(chain_id)
        if chain is None or mode != "live":
            raise ValueError(f"there is no chain {chain_id[:64]!r} in mode {mode[:16]!r}")

    def knows_token(self, chain_id: str, contract: str) -> bool:
        """Say whether the operator's own list has this token."""
        chain = self._chains.get(chain_id)
        return chain is not None and any(token.contract == contract for token in chain.tokens)

    def normalized(self, chain_id: str, address: str) -> str:
        """Return the one spelling of an address, with its tag behind a ``#`` where it has one. Raises ValueError."""
        chain = self._chains.get(chain_id)
        if chain is None:
            raise ValueError(f"there is no chain {chain_id[:64]!r}")
        try:
            return normalized(self._families[chain.family], address)
        except Exception as error:
            raise ValueError(f"no address of {chain_id}: {address[:128]!r}") from error

    def _resolve_owners(
        self, request: SignRequest, chain: ChainInfo, family: AddressFamily, effects: Effects, digest: bytes
    ) -> Reading | Refusal:
        own = self._own(request, family.name)
        own_address = self._address(request.mode, family.name, request.path)
        found: list[Outflow | Refusal | None] = [self._outflow(chain, move, request, own) for move in effects.movements]
        if effects.call is not None or effects.allowance is not None:
            found.append(self._exchange(request, chain, own_address, effects))
        outflows: dict[tuple[str, Recipient], Outflow] = {}
        for one in found:
            if isinstance(one, Refusal):
                return one
            if one is not None:
                earlier = outflows.get((one.asset, one.recipient))
                outflows[one.asset, one.recipient] = one if earlier is None else _sum(chain, earlier, one)
        number = _slot_number(effects)
        if number is None:
            return Refusal("UNREADABLE_PAYLOAD", "The payload has neither a sequence nor an end of its validity.")
        if effects.staking is not None and (refusal := _staking_refusal(effects.staking, request, own)) is not None:
            return refusal
        if outflows and request.path.account == PLATFORM_ACCOUNT:
            return Refusal("GAS_STATION_PAYS_OUT", "The platform's own addresses only pay to addresses of ours.")
        return Reading(
            request=request,
            coin_type=family.coin_type,
            slot=f"{chain.id}/{own_address}/{number}",
            digest=digest,
            outflows=tuple(outflows.values()),
            fee_max=effects.fee_max,
            delegate=effects.delegate,
            allowance=effects.allowance,
        )

    def _own(self, request: SignRequest, family: str) -> dict[str, KeyPath]:
        """Return the addresses of ours that the request names, as this family spells them."""
        return {self._address(request.mode, family, path): path for path in (*request.own, request.path)}

    def _exchange(
        self, request: SignRequest, chain: ChainInfo, sender: str, effects: Effects
    ) -> Outflow | Refusal | None:
        """Return what leaves by an approval, which is nothing yet, or by an exchange."""
        path = request.path
        if path.account == PLATFORM_ACCOUNT or path.change != WALLET_BRANCH or path.index != 0 or effects.movements:
            return Refusal("EXCHANGE_NOT_ALLOWED", "Only a merchant's main wallet approves and exchanges.")
        if effects.allowance is not None:
            refusal = self._exchanges.allowance_refusal(chain, effects.allowance)
            if refusal is not None or effects.call is None:
                return refusal
        if effects.call is None:
            return None
        read = self._exchanges.read(chain, sender, effects.call)
        if isinstance(read, Refusal):
            return read
        own = self._own(request, self._chains[read.chain].family)
        if read.refund_to is not None and read.refund_to != sender:
            return Refusal("REFUND_NOT_OURS", f"What is not paid out would go back to {read.refund_to}.")
        return self._exchanges.outflow(chain, read, into_own_wallet=_stays(path, own.get(read.recipient)))

    def _outflow(
        self, chain: ChainInfo, move: Movement, request: SignRequest, own: Mapping[str, KeyPath]
    ) -> Outflow | Refusal | None:
        """Return what leaves by a movement; None for one that stays with its owner, or is gas from the platform."""
        origin = request.path if move.source is None else own.get(move.source)
        if origin is None:
            return Refusal(
                "FOREIGN_SOURCE", f"The payload moves money of {move.source}, which is not shown to be ours."
            )
        if not any(token.contract == move.contract for token in chain.tokens):
            return Refusal("UNKNOWN_TOKEN", f"{move.contract} is not among the tokens of {chain.id}.")
        if _stays(origin, own.get(move.recipient)):
            return None
        if move.tag != request.tag:
            return Refusal("WRONG_TAG", f"The payload's tag is {move.tag}, and {request.tag} was asked for.")
        asset = asset_name(chain.id, move.contract)
        text = in_words(chain, move.contract, move.amount)
        return Outflow(asset, chain.id, destination(move.recipient, move.tag), move.amount, text)


def _has_sound_tag(family: AddressFamily, move: Movement) -> bool:
    """Whether a movement has no tag, or one in its one spelling: rules know recipients by that."""
    if move.tag is None:
        return True
    try:
        return family.tags and family.normalize_tag(move.tag) == move.tag
    except Exception:  # noqa: BLE001  whatever a plugin trips over, it is no tag
        return False


def _slot_number(effects: Effects) -> str | None:
    if effects.sequence is not None:
        return str(effects.sequence)
    if effects.tx_id is None or effects.valid_until is None or not effects.tx_id.isalnum():
        return None
    return f"#{effects.tx_id}@{effects.valid_until}"


def _staking_refusal(staking: Staking, request: SignRequest, own: Mapping[str, KeyPath]) -> Refusal | None:
    """Only the gas station has a stake, and lends it to addresses of ours only: its use is worth money."""
    if request.path.account != PLATFORM_ACCOUNT:
        return Refusal("STAKE_NOT_ALLOWED", "Only the gas station has a stake.")
    if staking.borrower is not None and staking.borrower not in own:
        return Refusal("STAKE_NOT_ALLOWED", f"{staking.borrower}, who would borrow, is not shown to be ours.")
    return None


def _stays(origin: KeyPath, recipient: KeyPath | None) -> bool:
    """Whether money that goes from one address of ours to another needs no rule.

    It needs none into the main wallet of the same merchant, from the platform, or to where it was. Anything else,
    another merchant's address or one that nobody looks after, is as good as gone.
    """
    if recipient is None:
        return False
    wallet = KeyPath(account=origin.account, change=WALLET_BRANCH, index=0)
    return origin.account == PLATFORM_ACCOUNT or recipient in (origin, wallet)


def _is_sound(request: SignRequest) -> bool:
    paths = (request.path, *request.own)
    return (
        len(request.payload) <= PAYLOAD_BYTES_MAX
        and max(len(request.purpose), len(request.reference), len(request.asked_by)) <= TEXT_CHARS_MAX
        and len(request.own) <= OWN_PATHS_MAX
        and all(
            0 <= path.account < PATH_END and path.change in BRANCHES and 0 <= path.index < PATH_END for path in paths
        )
    )


def _sum(chain: ChainInfo, one: Outflow, other: Outflow) -> Outflow:
    amount = one.amount + other.amount
    token = next(token for token in chain.tokens if asset_name(chain.id, token.contract) == one.asset)
    return structs.replace(one, amount=amount, text=in_words(chain, token.contract, amount))
