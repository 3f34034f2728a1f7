"""Work in a process of its own: what it returns and raises arrives, and nothing of it is left behind."""

from __future__ import annotations

import importlib
import os
import sys

import pytest

from cambist.cli.apart import apart
from cambist.settings import SettingsError


def test_what_the_work_returns_arrives_from_another_process():
    assert apart(lambda: {"pid": os.getpid()})["pid"] != os.getpid()


def test_what_the_work_imports_is_not_here_afterwards():
    assert "mailbox" not in sys.modules
    assert apart(lambda: importlib.import_module("mailbox").__name__) == "mailbox"
    assert "mailbox" not in sys.modules


def test_what_the_work_raises_is_raised_here_with_where_it_came_from():
    def refuse() -> None:
        raise SettingsError("it must be set.")

    with pytest.raises(SettingsError, match=r"it must be set\.") as caught:
        apart(refuse)
    assert "in refuse" in caught.value.__notes__[0]


def test_an_error_that_cannot_be_sent_is_told_all_the_same():
    class LocalError(Exception):
        pass

    def fail() -> None:
        raise LocalError("only here")

    with pytest.raises(RuntimeError, match="only here"):
        apart(fail)


def test_a_process_that_dies_is_an_error():
    with pytest.raises(ChildProcessError, match="without an answer"):
        apart(lambda: os._exit(3))
