"""What answers the signer: a person who has read the question, and no line break of what was pasted before it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cambist.ports import SystemClock
from cambist.signer import answers
from tests.support.signing import open_signer, request, stranger

CAMBIST = str(Path(sys.executable).with_name("cambist"))

Typing = Callable[[str], int]
Reading = Callable[[str], str]


@contextmanager
def at_a_terminal(folder: Path, *arguments: str, pasted: str) -> Iterator[tuple[Reading, Typing]]:
    """Run ``cambist`` at a terminal where so much is pasted already. Gives what reads up to a text, and what types."""
    master, slave = os.openpty()
    os.write(master, pasted.encode())
    seen = ""

    def read_to(text: str) -> str:
        nonlocal seen
        before = ""
        while text not in seen:
            seen += os.read(master, 4096).decode()
        before, _, seen = seen.partition(text)
        return before

    process = subprocess.Popen(
        [CAMBIST, *arguments], cwd=folder, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)  # once the command has ended there is nothing more to read
    try:
        yield read_to, lambda text: os.write(master, text.encode())
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.parametrize("pasted", ["#7: 5 USDX to bob\napprove\n", "#7: 5 USDX to bob\napprove\nappr"])
def test_a_pasted_line_break_makes_no_code(tmp_path, pasted):
    secret = answers.enrol(tmp_path, os.urandom, renew=False)
    (tmp_path / "answers.secret").write_text(secret)
    with at_a_terminal(tmp_path, "signer", "code", "answers.secret", pasted=pasted) as (read_to, type_in):
        read_to("You say (approve, deny): ")
        type_in("deny\n")
        assert " to deny this alone" in read_to("for some minutes")


def test_a_pasted_line_break_approves_nothing(tmp_path):
    (tmp_path / "cambist.toml").write_text('[signer]\nstore = "signed"')

    async def sign() -> str | None:
        signer = open_signer(tmp_path / "signed", SystemClock(), approval_limits={"memory/USDX": "0.0001"})
        (reply,) = await signer.sign([request(stranger("a"), 100, reference="payout:po_1")])
        await signer.aclose()
        return reply.refusal

    assert asyncio.run(sign()) == "APPROVAL_NEEDED"
    with at_a_terminal(tmp_path, "signer", "approve", "payout:po_1", pasted="y\n") as (read_to, type_in):
        read_to("Sign this? [y/N]: ")
        type_in("n\n")
        read_to("0 of 1 approved.")
    assert asyncio.run(sign()) == "APPROVAL_NEEDED"
