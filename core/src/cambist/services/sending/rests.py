"""Which senders of a chain failed lately, and who of them is tried when: what no node can plan looks like an outage.

A tick that fails is followed by a pause of the whole chain, and each sender that looks like an outage fails a tick of
its own. So it is not enough to be due later: who failed last comes after everybody else, and each failure in a row
doubles how long the sender rests, times how many fail, so that most ticks meet none of them. Only what the others show
to be the sender's own counts in a row: in an outage, where nobody is served, all are tried again as soon as it is over.

A chain plans all that a sender sends together, or none of it. So what a sender sends that failed twice is tried one by
one. What fails by itself is a suspect: it waits by itself, each time longer up to a bound, and its sender rests no
longer for it. Once one of them is planned after all, others are due again at once. Suspects are tried in turn, so that
none of them keeps another from being tried, and how often one has failed counts until it is planned: many of them fail
ticks so often that one is due long before its turn.
While something else of the sender can be planned, some suspects keep it from nothing; of more, each new one has it rest
longer. Where nothing else can be planned, more than these have it rest each time that one of them fails.

All this is in memory. Of what gave way the rows say until when it did: whoever begins to send on a chain learns from
them whom to try last, and takes what gave way for suspects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from msgspec import Struct, field

from cambist.domain.intents import IntentKind

from .rows import IntentRow

PAUSE = timedelta(seconds=15)
PAUSE_MAX = timedelta(minutes=10)
DOUBLED_MAX = 10
SWEEPS = 0
"""Stands for no sender: addresses are numbered from 1."""
FAILING_MAX = 10_000
"""Senders whose failures are remembered; of more, those that failed first are forgotten."""
APART_FROM = 2
"""Failures in a row from which on a sender's intents are tried one by one."""
APART_MAX = 10
"""Intents of one sender that are tried one by one in a tick."""
TRIED_MAX = 1_000
"""Intents of one sender whose failures are remembered."""
SUSPECTS_MAX = 3
"""Intents of one sender that may fail by themselves before each further one has the sender rest."""
SUSPECT_PAUSE_MAX = timedelta(hours=1)
"""How long an intent that fails by itself waits at most, however many do."""
WOKEN_MAX = 3
"""Others that failed by themselves and are due again at once with each one that is planned after all."""


class _Rest(Struct, frozen=True):
    """How often something failed in a row, how many others had been served when it did last, and when it is due.

    ``times`` leaves out failures between which nobody was served.
    """

    times: int
    served_before: int
    until: datetime

    def counts(self, now: datetime) -> bool:
        """Whether another failure now is one more in a row: it was not due long ago without failing since."""
        return now < self.until + PAUSE_MAX


class _Sender(Struct):
    """What failed of a sender. ``together`` counts how often it was more than one intent, which are ``unjudged``.

    ``suspects`` failed by themselves, the oldest failure first. ``is_fine``: something of the sender was planned since
    the newest of them was found. ``until``: when the last of it was due, as it failed last.
    """

    until: datetime

    rest: _Rest | None = None
    together: int = 0
    unjudged: dict[int, None] = field(default_factory=dict)
    suspects: dict[int, _Rest] = field(default_factory=dict)
    is_fine: bool = False

    @property
    def failed(self) -> Collection[int]:
        return [*self.unjudged, *self.suspects]

    def woken_by(self, planned: Collection[int], failed: Iterable[int], *, rested: bool) -> Collection[int]:
        """Return the suspects that need wait no longer, now that others of them are planned, but not what just failed.

        Or anything of a sender that ``rested``. Those whose failure is the oldest, each in its turn.
        """
        count, tried = WOKEN_MAX * max(len(self.suspects.keys() & set(planned)), rested), {*planned, *failed}
        woken = list(islice((pk for pk in self.suspects if pk not in tried), count))
        for pk in woken:
            self.suspects[pk] = self.suspects.pop(pk)
        return woken

    def forget(self, intent_pks: Iterable[int]) -> bool:
        """Forget failures of these intents; return whether there are others."""
        for intent_pk in intent_pks:
            self.unjudged.pop(intent_pk, None)
            self.suspects.pop(intent_pk, None)
        return bool(self.unjudged or self.suspects)


class Rests:
    """Which senders of one chain failed lately, as this process knows it.

    A new one knows nothing: see ``giving_way.learn_rests()``.
    A sender goes by its address' primary key; ``SWEEPS`` stands for what is planned for many of them together.
    """

    def __init__(self) -> None:
        self._failing: dict[int, _Sender] = {}
        self._unsigned: dict[int, int] = {}
        self._served = 0

    def learn(self, source_pk: int, dues: Mapping[int, datetime]) -> Collection[int]:
        """Take note of what of a sender gave way, as another process knew it, and until when; due first comes first.

        Return what of it is to be tried now: as much as in one tick, for each may fail one.
        """
        suspects = {pk: _Rest(1, self._served, until) for pk, until in dues.items()}
        self._failing[source_pk] = _Sender(max(dues.values()), suspects=suspects)
        return list(islice(dues, APART_MAX))

    def forget_past(self, now: datetime) -> None:
        """Forget failures of what was due long ago, and has not failed since: it is planned, gone, or lacks money.

        Likewise of what nothing is put off for so long: the clock was ahead when it failed, and no longer is.
        """
        latest = now + SUSPECT_PAUSE_MAX + PAUSE
        over = [pk for pk, one in self._failing.items() if one.until + PAUSE_MAX <= now or one.until > latest]
        for pk in over:
            del self._failing[pk]

    def in_order(self, source_pks: Iterable[int]) -> Sequence[int]:
        """Return the senders as they are tried: those that failed come last, the most frequent failure at the end.

        Among equals, those come last that the signer did not answer.
        """

        def place(pk: int) -> tuple[int, int]:
            sender = self._failing.get(pk)
            times = 0 if sender is None else 1 if sender.rest is None else sender.rest.times
            return times, self._unsigned.get(pk, 0)

        return sorted(source_pks, key=place)

    def until(self, source_pk: int, now: datetime) -> datetime | None:
        """Return until when nothing of a sender is to be tried, None where it may be tried."""
        sender = self._failing.get(source_pk)
        rest = None if sender is None else sender.rest
        return rest.until if rest is not None and now < rest.until else None

    def is_resting(self, source_pk: int, now: datetime) -> bool:
        return self.until(source_pk, now) is not None

    def groups(self, source_pk: int, intents: Sequence[IntentRow]) -> Sequence[Sequence[IntentRow]]:
        """Return what of a sender is planned together now: all of it, but for suspects, which come last.

        While it is not known which of it fails, that is a bounded number of intents one by one. Of these, and of
        suspects, what closes a gap or is tried again by an operator comes first.
        """
        sender = self._failing.get(source_pk)
        if sender is None:
            return [intents]
        due = {one.id: one for one in intents}
        suspects = [due[pk] for pk in sender.suspects if pk in due]
        others = [one for one in intents if one.id not in sender.suspects]
        if sender.unjudged and sender.together >= APART_FROM:
            return [[one] for one in sorted((*others, *suspects), key=_can_wait)][:APART_MAX]
        return [*([others] if others else []), *([one] for one in sorted(suspects, key=_can_wait)[:APART_MAX])]

    def failed_intents(self, source_pk: int) -> Collection[int]:
        """Return what of a sender failed and was not planned since."""
        sender = self._failing.get(source_pk)
        return [] if sender is None else sender.failed

    def suspects(self, source_pk: int, now: datetime) -> Collection[int]:
        """Return what of a sender still waits by itself, since it failed by itself."""
        sender = self._failing.get(source_pk)
        return [] if sender is None else [pk for pk, rest in sender.suspects.items() if now < rest.until]

    def gone(self, source_pk: int, intent_pks: Collection[int]) -> None:
        """Take note of what failed, and waits no more. With the last of it the sender's failures are forgotten."""
        sender = self._failing.get(source_pk)
        if sender is not None and intent_pks and not sender.forget(intent_pks):
            del self._failing[source_pk]

    def served(
        self,
        source_pk: int,
        planned: Collection[int] | None = None,
        failed: Iterable[int] = (),
        *,
        rested: bool = False,
    ) -> Collection[int]:
        """Take note of a sender that did not fail, or not with these intents: its failures are those of the others.

        ``failed`` did in the same tick. ``rested``: it was to rest, and was tried all the same.
        Return which suspects need wait no longer: what kept one that is planned now may be over for them as well. It is
        some at a time, for if it is not, each of them fails a tick.
        """
        self._served += 1
        self._unsigned.pop(source_pk, None)
        sender = self._failing.get(source_pk)
        if sender is None:
            return []
        woken: Collection[int] = [] if planned is None else sender.woken_by(planned, failed, rested=rested)
        if planned is not None:
            sender.rest, sender.is_fine = None, True
            if sender.together < APART_FROM and not sender.unjudged.keys().isdisjoint(planned):
                sender.unjudged.clear()  # it failed once, and now it did not
        if planned is None or (not sender.failed) or not sender.forget(planned):
            del self._failing[source_pk]
        return woken

    def unsigned(self, source_pk: int) -> None:
        """Take note of a sender that the signer did not answer, which is not the sender's failure."""
        times = self._unsigned.pop(source_pk, 0) + 1
        while len(self._unsigned) >= FAILING_MAX:
            del self._unsigned[next(iter(self._unsigned))]
        self._unsigned[source_pk] = times

    def failed(
        self, source_pk: int, now: datetime, intent_pks: Collection[int] = (), *, alone: bool = False
    ) -> datetime:
        """Take note of a sender that failed by itself, with these intents; return when these are due again.

        ``alone``: each of them failed by itself.
        """
        sender = self._failing.pop(source_pk, None) or _Sender(now)
        _keep_last(self._failing, FAILING_MAX - 1)
        others = len(self._failing)
        self._failing[source_pk] = sender
        if alone:
            until = self._failed_alone(sender, now, intent_pks, others)
        else:
            until = self._failed_together(sender, now, intent_pks, others)
        rests = [*sender.suspects.values(), *([] if sender.rest is None else [sender.rest])]
        sender.until = max(rest.until for rest in rests)
        return until

    def _failed_together(self, sender: _Sender, now: datetime, intent_pks: Collection[int], others: int) -> datetime:
        sender.together = sender.together + 1 if sender.unjudged else 1
        sender.unjudged |= dict.fromkeys(pk for pk in intent_pks if pk not in sender.suspects)
        _keep_last(sender.unjudged, TRIED_MAX)
        sender.rest = self._rest_of_all(sender, now, others)
        return sender.rest.until

    def _failed_alone(self, sender: _Sender, now: datetime, intent_pks: Collection[int], others: int) -> datetime:
        is_known = all(pk in sender.suspects for pk in intent_pks)
        # Each that is tried again may fail a tick: the more of them, the less often.
        crowd = max(1, len(sender.suspects) // SUSPECTS_MAX)
        for pk in intent_pks:
            sender.unjudged.pop(pk, None)
            sender.suspects[pk] = self._rest(sender.suspects.pop(pk, None), now, others, crowd)
        _keep_last(sender.suspects, TRIED_MAX)
        if not is_known:
            sender.rest = self._rest_for_suspect(sender, now, others)
        elif not sender.is_fine and len(sender.suspects) > SUSPECTS_MAX:
            # Nothing of it can be planned, for all that is known: one of them is enough to find out when that is over.
            sender.rest = self._rest_of_all(sender, now, others)
        return max(sender.suspects[pk].until for pk in intent_pks)

    def _rest(self, before: _Rest | None, now: datetime, others: int, crowd: int = 1) -> _Rest:
        """Return how long something rests that has failed once more, one of a crowd that does."""
        times, pause = 1, PAUSE
        if before is not None:
            times = min(before.times + (before.served_before < self._served), DOUBLED_MAX)
        if times > 1:
            pause = min(crowd * min(PAUSE_MAX, PAUSE * 2 ** (times - 1) * (1 + others)), SUSPECT_PAUSE_MAX)
        return _Rest(times, self._served, now + pause)

    def _rest_of_all(self, sender: _Sender, now: datetime, others: int) -> _Rest:
        before = sender.rest
        return self._rest(before if before is not None and before.counts(now) else None, now, others)

    def _rest_for_suspect(self, sender: _Sender, now: datetime, others: int) -> _Rest | None:
        """Return how long a sender rests of which one more intent has failed by itself.

        Not at all while others of it are planned, up to some suspects; from there on longer with each, so that whoever
        goes on asking for what nobody can plan fails few ticks.
        """
        was_fine, sender.is_fine = sender.is_fine, False
        if not was_fine:
            return self._rest_of_all(sender, now, others)
        more = len(sender.suspects) - SUSPECTS_MAX
        return _Rest(1, self._served, now + min(PAUSE_MAX, more * PAUSE)) if more > 0 else None


def _can_wait(intent: IntentRow) -> bool:
    return not (intent.is_retried or intent.update.kind == IntentKind.REPAIR)


def _keep_last(found: dict[int, Any], most: int) -> None:
    while len(found) > most:
        del found[next(iter(found))]
