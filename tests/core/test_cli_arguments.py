"""Arguments that can mean nothing, and files that hold nothing: each is told in a sentence."""

from __future__ import annotations

import os

import pytest

from cambist.cli.demo import MARK
from tests.support.command import run_command


@pytest.fixture
def cambist(tmp_path, database_url):
    (tmp_path / "cambist.toml").write_text(f'[database]\nurl = "{database_url}"')
    return lambda *arguments: run_command(*arguments, cwd=tmp_path)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("keys", "init", "A" * 5_000), "AAA cannot be written: File name too long."),
        (("manifest", "A" * 5_000), "AAA cannot be written: File name too long."),
        (("manifest", os.devnull), "/dev/null is no file."),
        (("signer", "approve", "\udcff\udcfe"), "Nothing waits for approval under '??'."),
        (("demo", "--once", "--data-dir", "cambist.toml/demo"), "The demo failed: cambist.toml/demo: Not a directory"),
    ],
    ids=["keys", "manifest", "device", "approve", "demo"],
)
def test_an_argument_that_can_mean_nothing_is_told_in_a_sentence(cambist, arguments, sentence):
    answer = cambist(*arguments)
    assert answer.returncode == 1
    assert answer.stderr.endswith(f"{sentence}\n")


@pytest.mark.parametrize("content", [b"", b'{"email": "demo1@sh', b"\xff", b"[]", b'{"email": "a@b.c"}'])
def test_a_month_that_was_cut_off_is_told(cambist, tmp_path, content):
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "cambist.toml").write_text(f"{MARK}: whatever")
    (folder / "month.json").write_bytes(content)
    answer = cambist("demo", "--once", "--data-dir", "demo")
    assert answer.returncode == 1
    assert "The demo failed: demo/month.json is not whole: remove it, and a month is made anew" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_file_that_holds_no_secret_makes_no_code(cambist, tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe" * 10_000)
    answer = cambist("signer", "code", "binary")
    assert (answer.returncode, answer.stderr) == (1, "Error: binary holds no secret of 'cambist signer enrol'.\n")
