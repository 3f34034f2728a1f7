"""Stories of money that goes out again, paid for by a gas station: they share a gateway on each kind of chain."""

from __future__ import annotations

import pytest

from tests.support.opened import opened_by_folder as opened

__all__ = ["opened"]


@pytest.fixture(scope="module")
def by_exec() -> bool:
    """Have processes that hold in memory what they read themselves: a story looks for secrets there."""
    return True
