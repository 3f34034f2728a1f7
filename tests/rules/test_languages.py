"""What other languages say in place of the API's own sentences: for every code that the dashboards can be told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from cambist.domain.intents import IntentKind
from cambist.domain.troubles import ChainProblem, SetupProblem, Trouble, Unsendable
from cambist.services.accounting.statements.kinds import TYPES
from cambist.services.jobs.requests import Kind
from cambist.signer.reports import Outcome
from cambist_tasks.crons import CRONS
from cambist_web.openapi.audiences import Audience, of_audience
from cambist_web.openapi.pages import whole_description
from tests.support.web import shown_app

LANGUAGES = Path("web/dashboard/src/i18n")
SAID = json.loads((LANGUAGES / "de" / "said.json").read_text())
CORE = Path("core/src/cambist")


def attention_codes() -> set[str]:
    overviews = CORE / "services" / "overviews"
    return {
        code
        for path in (overviews / "attention.py", overviews / "operators.py")
        for code in re.findall(r'code="([A-Z_]+)"', path.read_text())
    }


@pytest.fixture(scope="module")
def told():
    """Give every code that an operation of the dashboards' can answer; the description needs no gateway."""
    whole = json.loads(whole_description(shown_app()))
    found = {
        code
        for audience in (Audience.DASHBOARD, Audience.OPERATOR)
        for item in of_audience(whole, audience)["paths"].values()
        for operation in item.values()
        for status, answer in operation["responses"].items()
        if status[0] in "45"
        for code in _enums(answer["content"]["application/json"]["schema"])
    }
    assert len(found) > 150
    return found


def _enums(schema: dict[str, Any]) -> Iterator[str]:
    for part in schema.get("allOf", ()):
        yield from part.get("properties", {}).get("code", {}).get("enum", ())


def test_every_error_that_the_dashboards_can_be_told_has_a_sentence_in_every_language(told):
    for said in sorted(LANGUAGES.glob("*/said.json")):
        sentences = json.loads(said.read_text())["errors"]
        assert {code for code in told if not sentences.get(code, "").strip()} == set(), said


def test_all_that_needs_attention_leads_to_where_somebody_sees_to_it():
    places = Path("web/dashboard/src/ui/places.ts").read_text()
    assert set(re.findall(r"^  ([A-Z_]+): ", places, re.MULTILINE)) == attention_codes()


def test_sentences_for_errors_are_for_codes_that_are_documented():
    documented = set(re.findall(r"`([A-Z0-9_]+)`", Path("docs/merchants/errors.md").read_text()))
    assert set(SAID["errors"]) - documented == set()


def test_all_that_needs_attention_is_said_in_every_language():
    codes = attention_codes()
    assert set(SAID["attention"]) == codes
    for said in LANGUAGES.glob("*/said.json"):
        assert set(json.loads(said.read_text())["attention"]) == codes, said


def test_reasons_to_wait_are_those_of_the_queue_and_of_collections():
    sending = CORE / "services" / "sending"
    sources = "".join(path.read_text() for path in (*sending.rglob("*.py"), *(CORE / "domain").glob("*.py")))
    sources += (CORE / "services" / "exchanges" / "queued.py").read_text()
    unknown = {code for code in SAID["waits"] if f'"{code}"' not in sources}
    assert unknown == set()


def test_what_is_wrong_with_chains_jobs_and_tokens_is_said_in_every_language():
    kinds = Trouble, ChainProblem, SetupProblem, Unsendable
    codes = {code for kind in kinds for code in kind}
    assert len(codes) == sum(map(len, kinds)), "each code stands for one thing"
    for said in LANGUAGES.glob("*/said.json"):
        assert set(json.loads(said.read_text())["troubles"]) == codes, said


def test_reasons_why_nothing_is_done_by_itself_are_the_gateways():
    payouts = "".join(path.read_text() for path in (CORE / "services" / "payouts").glob("*.py"))
    assert {code for code in SAID["automatic"] if f'"{code}"' not in payouts} == set()


def test_kinds_of_intents_movements_and_jobs_and_what_becomes_of_answers_have_a_name_in_every_language():
    names = {
        "kind": set(IntentKind),
        "movement": set(TYPES),
        "job": set(Kind),
        "recurring": {cron.name for cron in CRONS},
        "signerAnswer": set(get_args(Outcome)),
    }
    for path in LANGUAGES.glob("*/api.json"):
        texts = json.loads(path.read_text())
        assert {group: set(texts[group]) for group in names} == names, path
