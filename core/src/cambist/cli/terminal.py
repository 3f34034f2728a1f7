"""What commands write, and when they read: no text of a stranger's looks like another one, or answers for a person."""

from __future__ import annotations

import select
import sys
import termios
from typing import Final

import click

from cambist.plugin import printable

QUIET_S: Final = 0.2


def echo(text: str | bytes, *, mark: str = "", err: bool = False) -> None:
    """Write lines to the terminal, with what cannot be seen written out. JSON stays JSON.

    ``mark`` follows as it is: a text of our own, which may have a colour.
    """
    told = text.decode() if isinstance(text, bytes) else text
    click.echo(printable(told, lines=True) + mark, err=err)


def forget_typed() -> None:
    """Forget what was typed or pasted into the terminal until now: what is asked next is answered by whoever reads it.

    A long paste arrives in parts, so that a moment without any has to pass. What is no terminal stays as it is.
    """
    if not sys.stdin.isatty():
        return
    comes = True
    while comes:
        comes = bool(select.select([sys.stdin], [], [], QUIET_S)[0])
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
