"""What a contract's refusal says, in the forms that Solidity has for it."""

from __future__ import annotations

import pytest

from cambist_chainkit.reverts import REASON_MAX, one_line, refusal_in

REASON = "08c379a0" + f"{32:064x}" + f"{9:064x}" + b"no can do".hex().ljust(64, "0")


@pytest.mark.parametrize(
    "digits, said",
    [
        ("", ""),
        ("00", ""),
        (REASON, "no can do"),
        (REASON[:-40], "no can do"),
        (REASON.upper(), "no can do"),
        ("08c379a0", ""),
        ("08c379a0" + "zz", ""),
        ("08c379a0" + f"{32:064x}" + "f" * 64 + "41" * 500, "A" * REASON_MAX),
        ("4e487b71" + f"{0x11:064x}", "panic 0x11"),
        ("deadbeef" + "00" * 32, "error 0xdeadbeef"),
    ],
)
def test_a_refusal_is_told(digits: str, said: str) -> None:
    """Of an error with a text, a panic, an error of the contract's own; and nothing where there is none."""
    assert refusal_in(digits) == said


def test_foreign_text_is_one_short_line() -> None:
    """Whatever a contract wrote."""
    assert one_line(" a\nb\0c\u202e ") == r"a\u000ab\u0000c\u202e"
    assert len(one_line("x" * 1000)) == REASON_MAX
