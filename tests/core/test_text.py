"""Text that hides something is refused, and written out where it is shown; what people write is left alone."""

from __future__ import annotations

import io
import json
import time
import unicodedata

import pytest
import structlog

from cambist.cli.terminal import echo
from cambist.domain.text import hidden_in
from cambist.logs import configure_logs, redact_text
from cambist.plugin import printable

HIDDEN = ["\0", "\x1b", "\x7f", "\x85", "\x9b", "\n", "\t", "\u00ad", "\u061c", "\u200b", "\u200e", "\u2028", "\u202e"]
HIDDEN += ["\u2060", "\u2066", "\u3164", "\ufeff", "\U000e0041", "\ud800"]


@pytest.mark.parametrize("character", HIDDEN, ids=ascii)
def test_what_nobody_sees_is_found_anywhere_and_printable(character):
    for text in (character, f"ada{character}", f"{character}ada", f"a{character}da"):
        assert hidden_in(text) == character
        assert hidden_in(printable(text)) is None


def test_no_control_or_format_character_is_forgotten_but_those_that_are_seen():
    seen = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    of_kind = (chr(one) for one in range(0x110000) if unicodedata.category(chr(one)) in {"Cc", "Cf", "Cs", "Zl", "Zp"})
    hieroglyphs = {chr(one) for one in range(0x13430, 0x13456)}
    assert {one for one in of_kind if hidden_in(one) is None} - hieroglyphs == set(seen)


@pytest.mark.parametrize(
    "text", ["a\u200cda", "a\u200dmin@shop.example", "\u200c", "\u200dada", "1\u200c2", "\u0627\u200c", "\u200c\u0627"]
)
def test_a_joiner_that_joins_nothing_is_hidden(text):
    assert hidden_in(text) in {"\u200c", "\u200d"}


@pytest.mark.parametrize(
    "text",
    [
        "Ada Lovelace",
        "Zoë Müller-Lüdenscheidt, 12 € – 50 %",
        "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627",  # a Persian name
        "\u0936\u094d\u200d\u0930\u0940",  # a Devanagari conjunct
        "\U0001f469\u200d\U0001f4bb",
        "\U0001f469\U0001f3fd\u200d\U0001f52c",
        "\u2764\ufe0f\u200d\U0001f525",
        "名前 \u845b\U000e0100",
    ],
)
def test_what_people_write_is_left_alone(text):
    assert hidden_in(text) is None


def test_a_long_text_that_is_full_of_joiners_is_read_once():
    began = time.thread_time()
    assert hidden_in("\u0628\u200c" * 400_000 + "\u0628") is None
    assert time.thread_time() - began < 4


@pytest.mark.parametrize("part", ["a.", "a-", "a://", "://a:", "eyJ-", "eyJa.", "?key=", "Bearer a.", "ck_live_"])
def test_a_long_text_is_looked_through_for_secrets_once(part):
    """Such as a stranger's path, which is logged where the request for it fails."""
    began = time.thread_time()
    redact_text(part * (64_000 // len(part)))
    assert time.thread_time() - began < 1


def test_lines_are_for_texts_that_may_have_them():
    assert hidden_in("one\n\ttwo\r\n", lines=True) is None
    assert hidden_in("one\n\x1b[2J", lines=True) == "\x1b"


def test_what_a_stranger_wrote_does_nothing_to_the_terminal_and_json_stays_json(capsys):
    told = {"name": "\x9b2J\u202eevil", "tag": "\U000e0041"}
    echo("job_1\x1b[2K\rjob_2\u202e")
    echo(json.dumps(told, ensure_ascii=False))
    first, second = capsys.readouterr().out.splitlines()
    assert first == "job_1\\u001b[2K\\u000djob_2\\u202e"
    assert second.isascii()
    assert json.loads(second) == told


def test_log_lines_for_people_do_nothing_to_the_terminal():
    stream = io.StringIO()
    configure_logs(stream=stream)
    structlog.get_logger("test_text").warning("asked", email="\x1b[2J\u202e", details={"name": "\x1b[2J"})
    assert "asked" in stream.getvalue()
    assert hidden_in(stream.getvalue(), lines=True) is None


@pytest.mark.parametrize("name", ["password", "passwd", "pass", "passphrase"])
def test_a_password_that_an_address_has_among_its_options_is_removed(name):
    text = redact_text(f"postgresql://db.example/x?user=cambist&{name}=s3cr3t&sslmode=require")
    assert "s3cr3t" not in text
    assert text.endswith("&sslmode=require")
