"""What other languages say in place of the API's own sentences: for codes that it has, all that need attention."""

from __future__ import annotations

import json
import re
from pathlib import Path

from cambist.domain.intents import IntentKind
from cambist.services.jobs.requests import Kind
from cambist_tasks.crons import CRONS

LANGUAGES = Path("web/dashboard/src/i18n")
SAID = json.loads((LANGUAGES / "de" / "said.json").read_text())
CORE = Path("core/src/cambist")


def test_sentences_for_errors_are_for_codes_that_are_documented():
    documented = set(re.findall(r"`([A-Z0-9_]+)`", Path("docs/merchants/errors.md").read_text()))
    assert set(SAID["errors"]) - documented == set()


def test_all_that_needs_attention_is_said_in_every_language():
    overviews = CORE / "services" / "overviews"
    codes = {
        code
        for path in (overviews / "attention.py", overviews / "operators.py")
        for code in re.findall(r'code="([A-Z_]+)"', path.read_text())
    }
    assert set(SAID["attention"]) == codes
    for said in LANGUAGES.glob("*/said.json"):
        assert set(json.loads(said.read_text())["attention"]) == codes, said


def test_reasons_to_wait_are_those_of_the_queue_and_of_collections():
    sending = CORE / "services" / "sending"
    sources = "".join(path.read_text() for path in (*sending.rglob("*.py"), CORE / "domain" / "collections.py"))
    sources += (CORE / "services" / "exchanges" / "queued.py").read_text()
    unknown = {code for code in SAID["waits"] if f'"{code}"' not in sources}
    assert unknown == set()


def test_reasons_why_nothing_is_done_by_itself_are_the_gateways():
    payouts = "".join(path.read_text() for path in (CORE / "services" / "payouts").glob("*.py"))
    assert {code for code in SAID["automatic"] if f'"{code}"' not in payouts} == set()


def test_kinds_of_intents_and_jobs_have_a_name_in_every_language():
    names = {"kind": set(IntentKind), "job": set(Kind), "recurring": {cron.name for cron in CRONS}}
    for path in LANGUAGES.glob("*/api.json"):
        texts = json.loads(path.read_text())
        assert {group: set(texts[group]) for group in names} == names, path
