"""Stories of money that goes out again, paid for by a gas station: they share a gateway on each kind of chain."""

from __future__ import annotations

from tests.support.opened import opened_by_folder as opened

__all__ = ["opened"]
