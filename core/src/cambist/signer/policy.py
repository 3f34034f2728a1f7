"""Decides what the signer refuses and what it signs: facts in, verdict out.

Amounts are counted per slot, which is a sequence of an address: of all payloads for one slot at most one takes
effect, so the largest amount counts, once, when it was first signed. Without sequences each payload is a slot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from cambist.domain.branches import ONE_TIME_BRANCH
from cambist.domain.intents import DELAYED

from .outflows import Outflow, Price, Recipient, Refusal
from .protocol import ALREADY_SIGNED, DENIED, VOIDED
from .reading import PLATFORM_ACCOUNT, Reading
from .rules import Rules, asset_name

HOUR_S = 3_600
FRESH_PAYOUTS = "fresh payouts"
MINUTE_S = 60


class Window:
    """What was counted within the last hour, by minute. A minute counts until all of it is an hour old."""

    def __init__(self, minutes: Mapping[int, int]) -> None:
        """``minutes`` maps minutes since 1970 to amounts."""
        self.minutes = dict(minutes)

    def total(self, now: int) -> int:
        """Return what counts at ``now``, in seconds since 1970."""
        return sum(amount for minute, amount in self.minutes.items() if _ends(minute) > now)

    def add(self, now: int, amount: int) -> None:
        minute = now // MINUTE_S
        self.minutes[minute] = self.minutes.get(minute, 0) + amount

    def room_at(self, amount: int, cap: int, now: int) -> int | None:
        """Return when so much more stays within the cap, if no more is counted; None for never."""
        left = self.total(now)
        for minute in sorted(minute for minute in self.minutes if _ends(minute) > now):
            if left + amount <= cap:
                break
            left, now = left - self.minutes[minute], _ends(minute)
        return now if left + amount <= cap else None


def _ends(minute: int) -> int:
    return (minute + 1) * MINUTE_S + HOUR_S


class Facts(Struct, frozen=True, kw_only=True):
    """What the signer remembers that matters to one reading.

    ``counted`` is what the slot counted before, by counter; ``known_since`` is by recipient, for the account that
    signs: an address that one merchant has paid is fresh for another. ``approved`` are those outflows that a person
    agreed to. ``elsewhere`` is the slot for which the same reference was signed before, where it is another one and may
    yet take effect, or has. ``is_voided``: the reference must never be signed again; ``is_denied``: because a person
    said so.
    """

    now: int
    counted: Mapping[str, int]
    window: Callable[[str], Window]
    known_since: Mapping[Recipient, int]
    approved: frozenset[Outflow] = frozenset()
    elsewhere: str | None = None
    is_voided: bool = False
    is_denied: bool = False


class Verdict(Struct, frozen=True, kw_only=True):
    """Whether it is signed, and what is remembered.

    ``counts`` is what the slot counts from now on, and only when nothing refuses it; ``learn`` and ``ask`` are the
    recipients whose delay begins and the outflows that a person is asked about, refused or not.
    """

    refusal: Refusal | None
    counts: Mapping[str, int]
    learn: Sequence[Recipient] = ()
    ask: Sequence[Outflow] = ()


def slot_number(slot: str) -> tuple[int, str | None]:
    """Return a slot's nonce; without nonces until when it is valid, and its transaction's id."""
    tx_id, dated, number = slot.rpartition("/")[2].rpartition("@")
    return int(number), tx_id.removeprefix("#") if dated else None


def needs_approval(rules: Rules, outflow: Outflow, elsewhere: str | None) -> bool:
    """Whether a person must agree to it: it is large, or may be the second time.

    The second time is what a gateway asks for that has lost its latest memory: its database is out of a backup.
    """
    limit = None if outflow.price is Price.FLOOR else rules.approval_limits.get(outflow.asset)
    return elsewhere is not None or (limit is not None and outflow.amount >= limit)


def refuse_or_allow(rules: Rules, reading: Reading, facts: Facts) -> Verdict:
    """Say whether the signer refuses or signs, by the operator's rules. Of several refusals the longest is told."""
    refusal = _voided(reading, facts) if facts.is_voided else _forbidden(rules, reading)
    if refusal is not None:
        return Verdict(refusal=refusal, counts={})
    ready_at = {one: _ready_at(rules, one, facts) for one in reading.outflows}
    fresh = {outflow: at for outflow, at in ready_at.items() if at > facts.now}
    counts = _counts(rules, reading, fresh, facts)
    ask = [one for one in reading.outflows if needs_approval(rules, one, facts.elsewhere) and one not in facts.approved]
    refusals = [
        *_unapproved(ask, facts.elsewhere),
        *_too_fresh(rules, reading, fresh, facts, counts),
        *_capped(rules, reading, facts, counts),
    ]
    learn = [one.recipient for one in fresh if one.price is Price.NONE and one.recipient not in facts.known_since]
    longest = max(refusals, key=lambda one: (one.retry_at_s is None, one.retry_at_s or 0), default=None)
    return Verdict(refusal=longest, counts=counts, learn=learn, ask=ask)


def _voided(reading: Reading, facts: Facts) -> Refusal:
    if facts.is_denied:
        return Refusal(DENIED, f"A person has denied {reading.request.reference}: it is never signed.")
    return Refusal(VOIDED, f"{reading.request.reference} was cancelled: it is never signed again.")


def _ready_at(rules: Rules, outflow: Outflow, facts: Facts) -> int:
    """Return until when an outflow is one to a fresh address.

    Of unknown price it always is: to know who is named says nothing of who gets it.
    """
    delay_s = rules.fresh_address_delay_s
    if outflow.price is Price.UNKNOWN:
        return facts.now + delay_s
    if outflow.price is Price.FLOOR or outflow.to_address in rules.allowed_addresses.get(outflow.to_chain, ()):
        return facts.now
    return facts.known_since.get(outflow.recipient, facts.now) + delay_s


def _forbidden(rules: Rules, reading: Reading) -> Refusal | None:
    """Return why no time and no approval makes it right."""
    chain = reading.request.chain
    if reading.delegate is not None and reading.delegate not in rules.delegates.get(chain, ()):
        return Refusal("DELEGATE_NOT_ALLOWED", f"{reading.delegate} would get power over an address of ours.")
    path = reading.request.path
    if reading.delegate is not None and (path.account == PLATFORM_ACCOUNT or path.change != ONE_TIME_BRANCH):
        return Refusal("DELEGATE_NOT_ALLOWED", "A contract gets power over no address but a payment's.")
    for outflow in reading.outflows:
        if outflow.price is not Price.FLOOR and not _is_allowed(rules, chain, outflow):
            text = f"{outflow.to_address} is not among the allowed addresses of {outflow.to_chain}."
            return Refusal("TARGET_NOT_ALLOWED", text)
    if reading.allowance is not None:
        hourly = rules.hourly_caps.get(asset_name(chain, reading.allowance.contract))
        if hourly is not None and reading.allowance.amount > hourly:
            return Refusal("ALLOWANCE_ABOVE_CAP", "An allowance is for no more than may leave within an hour.")
    cap = rules.fee_caps.get(chain)
    if cap is not None and reading.fee_max > cap:
        return Refusal("FEE_ABOVE_CAP", f"A fee of up to {reading.fee_max} is more than signer.fee_caps on {chain}.")
    return None


def _is_allowed(rules: Rules, chain: str, outflow: Outflow) -> bool:
    """Whether the allow-lists let it go: that of the chain where it arrives, and none is left by way of another chain.

    Nobody can say that what is of unknown price arrives where it is sent.
    """
    if not rules.allowed_addresses.keys() & {chain, outflow.to_chain}:
        return True
    known = rules.allowed_addresses.get(outflow.to_chain, frozenset())
    return outflow.price is Price.NONE and outflow.to_address in known


def _counts(rules: Rules, reading: Reading, fresh: Mapping[Outflow, int], facts: Facts) -> dict[str, int]:
    sums = Counter({f"fee {reading.request.chain}": reading.fee_max})
    for outflow in reading.outflows:
        if outflow.price is Price.FLOOR:
            sums[f"exchanged {outflow.asset}"] += outflow.amount
            continue
        is_fresh = outflow in fresh
        own = {**_own_caps(rules, reading, outflow), **(_own_fresh_caps(rules, reading, outflow) if is_fresh else {})}
        for counter in (f"out {outflow.asset}", f"fresh {outflow.asset}")[: 2 if is_fresh else 1]:
            sums[counter] += outflow.amount
        for counter, cap in own.items():
            if cap is not None:
                sums[counter] += 1 if counter.endswith(FRESH_PAYOUTS) else outflow.amount
    return {counter: max(sums.get(counter, 0), facts.counted.get(counter, 0)) for counter in {**sums, **facts.counted}}


def _own_caps(rules: Rules, reading: Reading, outflow: Outflow) -> dict[str, int | None]:
    """Return the caps by counter that bound what this kind of asker has signed for this merchant.

    Whose money it is, the key's path says, which cannot be lied about.
    """
    asker = rules.askers.get(reading.request.asked_by)
    if asker is None:
        return {}
    return {f"{_asker(reading)} out {outflow.asset}": asker.hourly_caps.get(outflow.asset)}


def _own_fresh_caps(rules: Rules, reading: Reading, outflow: Outflow) -> dict[str, int | None]:
    asker = rules.askers.get(reading.request.asked_by)
    if asker is None:
        return {}
    return {
        f"{_asker(reading)} fresh {outflow.asset}": asker.fresh_address_caps.get(outflow.asset),
        f"{_asker(reading)} {FRESH_PAYOUTS}": asker.fresh_payouts_per_hour,
    }


def _asker(reading: Reading) -> str:
    return f"{reading.request.asked_by}:{reading.request.path.account}"


def _unapproved(ask: Sequence[Outflow], elsewhere: str | None) -> list[Refusal]:
    wait = "waits for 'cambist signer approve'."
    if elsewhere is None:
        return [Refusal("APPROVAL_NEEDED", f"{one.text} to {one.to_address} {wait}") for one in ask]
    number, tx_id = slot_number(elsewhere)
    text = f"was signed before, as {elsewhere}, and {wait}"
    return [
        Refusal(ALREADY_SIGNED, f"{one.text} to {one.to_address} {text}", slot_number=number, tx_id=tx_id)
        for one in ask
    ]


def _too_fresh(
    rules: Rules, reading: Reading, fresh: Mapping[Outflow, int], facts: Facts, counts: Mapping[str, int]
) -> list[Refusal]:
    found = []
    for outflow, ready_at in fresh.items():
        own, retry_at, rooms = _own_fresh_caps(rules, reading, outflow), ready_at, []
        if own and reading.request.purpose not in DELAYED:
            caps = {f"fresh {outflow.asset}": rules.fresh_address_caps.get(outflow.asset), **own}
            rooms = [_room_at(counter, cap, facts, counts) for counter, cap in caps.items() if cap is not None]
            retry_at = max((ready_at if at is None else min(ready_at, at) for at in rooms), default=facts.now)
        if retry_at > facts.now and outflow.price is Price.UNKNOWN:
            # Waiting makes it no better known: only a cap that has room again lets it through.
            later = None if not rooms or None in rooms else retry_at
            text = f"{outflow.text} is below signer.floor_rates, or has none: no cap lets it through."
            found.append(Refusal("PRICE_UNKNOWN", text, later))
        elif retry_at > facts.now:
            text = f"{outflow.to_address} is a fresh address: {outflow.text} must wait."
            found.append(Refusal("TARGET_TOO_FRESH", text, retry_at))
    return found


def _capped(rules: Rules, reading: Reading, facts: Facts, counts: Mapping[str, int]) -> list[Refusal]:
    caps: dict[str, int | None] = {}
    for one in reading.outflows:
        # What stays at a floor can be exchanged to and fro, and loses the margin below the market each time.
        stays = one.price is Price.FLOOR
        caps[f"{'exchanged' if stays else 'out'} {one.asset}"] = rules.hourly_caps.get(one.asset)
        caps |= {} if stays else _own_caps(rules, reading, one)
    fee = f"fee {reading.request.chain}"
    caps[fee] = rules.fee_hourly_caps.get(reading.request.chain)
    found = []
    for counter, cap in caps.items():
        if cap is None:
            continue
        room_at = _room_at(counter, cap, facts, counts)
        if room_at is None or room_at > facts.now:
            code = "HOURLY_FEES" if counter == fee else "HOURLY_CAP"
            whose, _, what = counter.rpartition(" ")
            by = f" for this merchant's {whose.partition(':')[0]}s" if ":" in whose else ""
            found.append(Refusal(code, f"The hour's limit of {what}{by} leaves no room.", room_at))
    return found


def _room_at(counter: str, cap: int, facts: Facts, counts: Mapping[str, int]) -> int | None:
    """Return when what the slot counts beyond what it counted before fits under the cap; None for never."""
    more = counts.get(counter, 0) - facts.counted.get(counter, 0)
    return facts.window(counter).room_at(more, cap, facts.now) if more > 0 else facts.now
