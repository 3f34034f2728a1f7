"""One stream, between the hub that hands it changes and the connection that takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TypeAlias

from msgspec.structs import replace

from cambist.services.changes import Change

from .messages import ChangeMessage, EndReason, ResyncReason, message_of
from .viewers import Viewer

_Key: TypeAlias = tuple[str, str | None, str | None, str | None]


class Reader:
    """What one stream has not been sent yet: each thing once, however often it changed.

    Who takes too little of it is not told single changes any more, but to read everything again.
    """

    def __init__(self, viewer: Viewer, pending_max: int) -> None:
        self.viewer = viewer
        self.woken = asyncio.Event()
        self.ended: EndReason | None = None
        self.resync: ResyncReason | None = None
        self._pending_max = pending_max
        self._pending: dict[_Key, ChangeMessage] = {}

    def put(self, changes: Iterable[Change]) -> None:
        """Take what the viewer sees of these."""
        for change in changes:
            if self.resync is not None:
                return
            if self.viewer.sees(change):
                self._put(message_of(change, for_operator=self.viewer.merchant_pk is None))

    def miss(self, reason: ResyncReason) -> None:
        """Note that changes were not handed on: everything is to be read again."""
        self._pending.clear()
        self.resync = reason
        self.woken.set()

    def end(self, reason: EndReason) -> None:
        """End the stream before it sends anything more."""
        self.ended = self.ended or reason
        self.woken.set()

    def take(self, most: int) -> list[ChangeMessage]:
        """Return what to send next, the oldest first."""
        taken = [self._pending.pop(key) for key in list(self._pending)[:most]]
        if not self._pending:
            self.woken.clear()
        return taken

    def take_resync(self) -> ResyncReason | None:
        """Return why everything is to be read again, once."""
        reason, self.resync = self.resync, None
        return reason

    @property
    def has_more(self) -> bool:
        return bool(self._pending) or self.resync is not None

    def _put(self, message: ChangeMessage) -> None:
        key = message.kind, message.id, message.merchant_id, message.mode
        # What changed again goes to the end, so that a page never hears of an older state last.
        before = self._pending.pop(key, None)
        if before is not None and message.status is None:
            # That something else of it changed, too, does not take back that it was resumed, or fails.
            message = replace(message, status=before.status)
        if len(self._pending) >= self._pending_max:
            self.miss("behind")
            return
        self._pending[key] = message
        self.woken.set()
