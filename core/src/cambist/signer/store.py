"""What the signer remembers, in a file of its own: what it signed or never will, known addresses, a person's approvals.

Nothing of it is secret, and nothing of it is in the gateway's database: whoever has that cannot make it forget.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from .answers import WRONG_PERIOD_S
from .outflows import Outflow
from .policy import HOUR_S, MINUTE_S, Facts, Verdict, Window, needs_approval, slot_number
from .reading import Reading
from .rules import Rules
from .store_clock import take_back
from .store_schema import VERSION, StoreError, StoreUnavailableError, connect, prepare, unopened

__all__ = ["FILE", "VERSION", "Asked", "Book", "Store", "StoreError", "StoreUnavailableError"]

FILE = "signed.sqlite"
LOCK_TIMEOUT_S = 20
SLOTS_KEPT_S = 7 * 86_400
SLOTS_MAX = 5_000_000
REFERENCES_MAX = 5_000_000
PRUNED_AT_ONCE = 2_000
KNOWN_MAX = 500_000
KNOWN_DROPPED = 50_000
USED_STEP_S = 86_400
APPROVALS_MAX = 10_000
APPROVAL_KEPT_S = 7 * 86_400


_PRUNE = (
    "DELETE FROM slots WHERE id <= (SELECT coalesce(max(id), 0) - ? FROM slots)"
    " OR id IN (SELECT id FROM (SELECT id, at FROM slots ORDER BY id LIMIT ?) WHERE at < ?)"
)
_SPENT = "INSERT INTO spent VALUES (?, ?, ?) ON CONFLICT (counter, minute) DO UPDATE SET amount = excluded.amount"
_ASKED = (
    "SELECT id, approved_at, slot, bought_min FROM approvals"
    " WHERE reference = ? AND chain = ? AND asset = ? AND to_address = ? AND amount = ? AND to_chain = ? AND bought = ?"
)


class Asked(Struct, frozen=True, kw_only=True):
    """An outflow that a person is asked about."""

    pk: int
    reference: str
    purpose: str
    asked_by: str
    chain: str
    to_chain: str
    to_address: str
    asset: str
    amount: str
    bought: str
    bought_min: str
    text: str
    asked_at: int


class Store:
    """The open file. Several processes may open it; one at a time writes."""

    def __init__(self, folder: Path) -> None:
        """Open it, or make it in a folder that only its owner may enter.

        Raises StoreError, and StoreUnavailableError where that may pass with time.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = folder / FILE
            prepare(file)
            self._connection = connect(file, timeout_s=LOCK_TIMEOUT_S)
        except (OSError, sqlite3.Error) as error:
            raise unopened(folder, error) from error

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def book(self, now: int) -> Iterator[Book]:
        """Lock the file for writing; all of it is on disk when the context ends, or none. Raises StoreError."""
        with self._writing() as connection:
            book = Book(connection, now)
            yield book
            book.write()

    def latest(self) -> int:
        """Return the latest time that the store has seen, in seconds since 1970. Raises StoreError."""
        with self._writing() as connection:
            return int(connection.execute("SELECT now FROM state").fetchone()["now"])

    def take_back(self, now: int) -> None:
        """Go on from ``now``, though the store has seen a later time: nothing is forgotten. Raises StoreError."""
        with self._writing() as connection:
            take_back(connection, now)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StoreError(f"The signer's store cannot be used: {error}.") from error


class Book:
    """The store within one transaction. A clock that went back does not take it back: it waits for the clock."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        """``now`` is in seconds since 1970; a later time at which an earlier transaction ended counts instead."""
        self._run = connection.execute
        state = self._run("SELECT now, known FROM state").fetchone()
        self._known: int = state["known"]
        self.now: int = max(now, state["now"])
        self._windows: dict[str, Window] = {}
        self._changed: set[str] = set()

    def facts(self, rules: Rules, reading: Reading) -> Facts:
        row = self._run("SELECT counts FROM slots WHERE slot = ?", (reading.slot,)).fetchone()
        counted = {} if row is None else msgspec.json.decode(row["counts"], type=dict[str, str])
        account = reading.request.path.account
        known = {one.recipient: self._since(one.to_chain, account, one.to_address) for one in reading.outflows}
        elsewhere = self._elsewhere(reading)
        denied = self._denied(reading.request.chain, reading.request.reference)
        approved = [
            one for one in reading.outflows if needs_approval(rules, one, elsewhere) and self._is_approved(reading, one)
        ]
        return Facts(
            now=self.now,
            counted={counter: int(amount) for counter, amount in counted.items()},
            window=self._window,
            known_since={recipient: since for recipient, since in known.items() if since is not None},
            approved=frozenset(approved),
            elsewhere=elsewhere,
            is_voided=denied is not None,
            is_denied=denied is True,
        )

    def record(self, rules: Rules, reading: Reading, facts: Facts, verdict: Verdict) -> None:
        for recipient in verdict.learn:
            self.learn(recipient.chain, reading.request.path.account, recipient.address)
        for outflow in verdict.ask:
            self._ask(reading, outflow)
        if verdict.refusal is not None:
            return
        for outflow in reading.outflows:
            if needs_approval(rules, outflow, facts.elsewhere):
                self._use_approval(reading, outflow)
        self._bind(reading)
        if verdict.counts == facts.counted:
            return
        for counter, amount in verdict.counts.items():
            if more := amount - facts.counted.get(counter, 0):
                self._window(counter).add(self.now, more)
                self._changed.add(counter)
        counts = msgspec.json.encode({counter: str(amount) for counter, amount in verdict.counts.items()})
        # Replacing gives it a new id, so that the oldest are always those with the lowest.
        self._run("INSERT OR REPLACE INTO slots (slot, at, counts) VALUES (?, ?, ?)", (reading.slot, self.now, counts))

    def _elsewhere(self, reading: Reading) -> str | None:
        """Return the slot for which the reference was signed before, unless it is this one, or is said to be dead."""
        slot = self._signed(reading)
        if slot is None or slot == reading.slot:
            return None
        same_sender = slot.rpartition("/")[0] == reading.slot.rpartition("/")[0]
        return None if same_sender and slot_number(slot)[0] in reading.request.dead else slot

    def _bind(self, reading: Reading) -> None:
        """Remember for which slot the reference was signed; not where nothing leaves."""
        if not reading.outflows or self._signed(reading) == reading.slot:
            return
        request = reading.request
        self._run(
            "DELETE FROM approvals WHERE chain = ? AND reference = ? AND approved_at IS NULL",
            (request.chain, request.reference),
        )
        self._run(
            "INSERT OR REPLACE INTO signed (chain, reference, slot) VALUES (?, ?, ?)",
            (request.chain, request.reference, reading.slot),
        )
        self._run("DELETE FROM signed WHERE id <= (SELECT max(id) - ? FROM signed)", (REFERENCES_MAX,))

    def _signed(self, reading: Reading) -> str | None:
        if not reading.outflows:
            return None
        return self._signed_slot(reading.request.chain, reading.request.reference)

    def _signed_slot(self, chain: str, reference: str) -> str | None:
        which = (chain, reference)
        found = self._run("SELECT slot FROM signed WHERE chain = ? AND reference = ?", which).fetchone()
        return None if found is None else str(found["slot"])

    def void(self, chain: str, reference: str, *, denied: bool = False) -> str | None:
        """Have the reference never be signed again; return the slot for which it was signed last, if it ever was.

        ``denied``: because a person said so, which is not forgotten when it is voided once more.
        """
        self._run(
            "INSERT INTO voided (chain, reference, at, denied) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (chain, reference, self.now, denied),
        )
        self._run("DELETE FROM voided WHERE id <= (SELECT max(id) - ? FROM voided)", (REFERENCES_MAX,))
        # Nobody need agree any more to what is not signed whatever they say.
        self._run("DELETE FROM approvals WHERE chain = ? AND reference = ? AND slot IS NULL", (chain, reference))
        return self._signed_slot(chain, reference)

    def _denied(self, chain: str, reference: str) -> bool | None:
        """Say of a reference that is voided whether a person has denied it; None of any other."""
        which = (chain, reference)
        found = self._run("SELECT denied FROM voided WHERE chain = ? AND reference = ?", which).fetchone()
        return None if found is None else bool(found["denied"])

    def learn(self, chain: str, account: int, address: str) -> int:
        """Return since when the address is known to the account: from now on, unless it was known."""
        since = self._since(chain, account, address)
        if since is None:
            known = (chain, account, address, self.now, self.now)
            self._run("INSERT INTO known_addresses VALUES (?, ?, ?, ?, ?)", known)
            self._known += 1
            return self.now
        return since

    def write(self) -> None:
        """Write the counters, and delete what is too old to count."""
        minute = self.now // MINUTE_S
        if self._known > KNOWN_MAX:
            self._drop_known()
        self._run("UPDATE state SET now = ?, known = ?", (self.now, self._known))
        for counter in self._changed:
            self._run(_SPENT, (counter, minute, str(self._windows[counter].minutes[minute])))
        if self._changed:
            self._run("DELETE FROM spent WHERE minute < ?", ((self.now - HOUR_S) // MINUTE_S - 1,))
            self._run(_PRUNE, (SLOTS_MAX, PRUNED_AT_ONCE, self.now - SLOTS_KEPT_S))

    def asked(self, reference: str | None = None) -> Sequence[Asked]:
        """Return what a person is asked about, oldest first."""
        rows = self._run(
            "SELECT id AS pk, reference, purpose, asked_by, chain, to_chain, to_address, asset, amount, bought,"
            " bought_min, text, asked_at FROM approvals"
            " WHERE approved_at IS NULL AND (? IS NULL OR reference = ?) ORDER BY id",
            (reference, reference),
        )
        return [msgspec.convert(dict(row), Asked) for row in rows]

    def approve(self, pk: int) -> None:
        """Note that a person agreed to what the question with this primary key says."""
        self._run("UPDATE approvals SET approved_at = ? WHERE id = ? AND approved_at IS NULL", (self.now, pk))

    def used(self, counter: str) -> int:
        """Return what a counter counted within the last hour."""
        return self._window(counter).total(self.now)

    def voided(self, limit: int) -> Sequence[tuple[str, str, int]]:
        """Return what was voided last, newest first: chain, reference and when."""
        rows = self._run("SELECT chain, reference, at FROM voided ORDER BY id DESC LIMIT ?", (limit,))
        return [(row["chain"], row["reference"], row["at"]) for row in rows]

    def wrong_codes(self) -> Sequence[int]:
        """Return when codes were wrong within the last hour, oldest first."""
        rows = self._run("SELECT at FROM wrong_codes WHERE at > ? ORDER BY id", (self.now - WRONG_PERIOD_S,))
        return [row["at"] for row in rows]

    def note_wrong_code(self) -> None:
        self._run("INSERT INTO wrong_codes (at) VALUES (?)", (self.now,))
        self._run("DELETE FROM wrong_codes WHERE at <= ?", (self.now - WRONG_PERIOD_S,))

    def _window(self, counter: str) -> Window:
        found = self._windows.get(counter)
        if found is None:
            rows = self._run("SELECT minute, amount FROM spent WHERE counter = ?", (counter,))
            found = self._windows[counter] = Window({row["minute"]: int(row["amount"]) for row in rows})
        return found

    def _since(self, chain: str, account: int, address: str) -> int | None:
        which = (chain, account, address)
        row = self._run(
            "SELECT since, used_at FROM known_addresses WHERE chain = ? AND account = ? AND address = ?", which
        ).fetchone()
        if row is None:
            return None
        if row["used_at"] + USED_STEP_S <= self.now:
            self._run(
                "UPDATE known_addresses SET used_at = ? WHERE chain = ? AND account = ? AND address = ?",
                (self.now, *which),
            )
        since: int = row["since"]
        return since

    def _drop_known(self) -> None:
        """Forget those that were used longest ago: what is forgotten is fresh again."""
        surplus = self._known - KNOWN_MAX
        oldest = "SELECT chain, account, address FROM known_addresses ORDER BY used_at LIMIT ?"
        key = "(chain, account, address)"
        self._run(f"DELETE FROM known_addresses WHERE {key} IN ({oldest})", (surplus + KNOWN_DROPPED,))  # noqa: S608  ours
        self._known = self._run("SELECT count(*) AS known FROM known_addresses").fetchone()["known"]

    def _asked(self, reading: Reading, outflow: Outflow) -> list[sqlite3.Row]:
        request = reading.request
        which = (request.reference, request.chain, outflow.asset, outflow.to_address, str(outflow.amount))
        rows = self._run(_ASKED, (*which, outflow.to_chain, outflow.bought))
        oldest = self.now - APPROVAL_KEPT_S
        # A call that is built anew may bring more than the person agreed to, and never less.
        return [
            row
            for row in rows
            if int(row["bought_min"]) <= outflow.bought_min
            and (row["approved_at"] is None or row["approved_at"] > oldest)
        ]

    def _is_approved(self, reading: Reading, outflow: Outflow) -> bool:
        # An approval is good for one slot: for what is signed first, and its replacements.
        good_for = (None, reading.slot)
        return any(row["approved_at"] is not None and row["slot"] in good_for for row in self._asked(reading, outflow))

    def _use_approval(self, reading: Reading, outflow: Outflow) -> None:
        approved = [row for row in self._asked(reading, outflow) if row["approved_at"] is not None]
        if any(row["slot"] == reading.slot for row in approved):
            return
        free = [row["id"] for row in approved if row["slot"] is None][0]  # noqa: RUF015  a StopIteration would hang the thread's caller
        self._run("UPDATE approvals SET slot = ? WHERE id = ?", (reading.slot, free))

    def _ask(self, reading: Reading, outflow: Outflow) -> None:
        if any(row["approved_at"] is None for row in self._asked(reading, outflow)):
            return
        request = reading.request
        self._run(
            "INSERT INTO approvals (reference, purpose, asked_by, chain, asset, to_address, amount, text, asked_at,"
            " to_chain, bought, bought_min) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (request.reference, request.purpose, request.asked_by, request.chain, outflow.asset, outflow.to_address,
             str(outflow.amount), outflow.text, self.now, outflow.to_chain, outflow.bought, str(outflow.bought_min)),
        )  # fmt: skip
        self._run("DELETE FROM approvals WHERE id <= (SELECT max(id) - ? FROM approvals)", (APPROVALS_MAX,))
