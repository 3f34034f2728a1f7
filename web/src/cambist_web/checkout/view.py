"""What the pages show, ready to print: every decision is made before a template runs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Tone = Literal["wait", "work", "good", "care", "bad"]
"""How a state feels: waiting for the customer, working by itself, done, needs attention, ended badly."""


class Step(Struct, frozen=True, kw_only=True):
    """One line of the timeline. ``done`` of ``whole`` is a measure of progress, where there is one."""

    label: str
    detail: str = ""
    state: Literal["done", "now", "todo", "stopped"]
    done: int = 0
    whole: int = 0


class TransferLine(Struct, frozen=True, kw_only=True):
    """A transfer that arrived. ``url`` is None where no block explorer shows it."""

    amount: str
    tx_id: str
    tx_short: str
    url: str | None
    detail: str
    matches: bool


class Countdown(Struct, frozen=True, kw_only=True):
    """The time that is left, counted by the server's clock, for customers' clocks are often wrong."""

    remaining_ms: int
    text: str
    expires_iso: str
    expires_text: str


class Way(Struct, frozen=True, kw_only=True):
    """A link back to the shop; taken by itself after ``auto_s`` seconds where that is set and scripts run."""

    url: str
    label: str
    auto_s: int | None = None


class PayBox(Struct, frozen=True, kw_only=True):
    """What to send and where to.

    ``wallet_uri`` is None where it must not be opened by a click, or is no link. ``qr_caption`` says what the code
    holds: where that is the address alone, the amount has to be entered by hand.
    """

    amount: str
    amount_label: str
    address_head: str
    address_middle: str
    address_tail: str
    qr_text: str
    qr_caption: str
    wallet_uri: str | None
    warning: str

    @property
    def address(self) -> str:
        """The address in one piece."""
        return self.address_head + self.address_middle + self.address_tail


class CheckoutView(Struct, frozen=True, kw_only=True):
    """The only input of the checkout's and the receipt's templates.

    ``pay`` is None when nothing should be sent (any more). ``refresh_s`` is None when nothing can change.
    """

    public_id: str
    title: str
    shop_name: str
    sandbox: bool
    status: str
    tone: Tone
    chip: str
    headline: str
    message: str
    notes: tuple[str, ...]
    token: str
    network: str
    standard: str | None
    expected: str
    received: str
    fiat: str | None
    rate: str | None
    part_paid_percent: int | None
    pay: PayBox | None
    countdown: Countdown | None
    steps: tuple[Step, ...]
    transfers: tuple[TransferLine, ...]
    transfers_left_out: int
    details: tuple[tuple[str, str], ...]
    forward: Way | None
    back: Way | None
    has_receipt: bool
    receipt_time: str
    refresh_s: int | None
