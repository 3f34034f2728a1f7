"""Words that meant several things, or that nobody guesses, do not come back as names: the glossary has what is said.

Names are what a file defines: its own, classes, functions and their parameters, variables and fields. Sentences, the
names of tests among them, may use any word.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("core", "web/src", "tasks/src", "chainkit", "plugins", "devnets", "bench", "tests")
FILES = [
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not {"node_modules", ".venv", "build"} & set(path.relative_to(ROOT).parts)
]

S = "core/src/cambist/services/"
SENDING = f"{S}sending/"

# Each word, with the places that may use it as a name, and why.
BANNED: Mapping[str, Mapping[str, str]] = {
    "settle": {
        SENDING: "an operator names the transaction that used a nonce: the one meaning that is left",
        f"{S}audit/entries.py": "the same act, in the audit log",
        "core/src/cambist/db/models/outbound.py": "the same act, in the intent's row",
        "web/src/cambist_web/api/outbound.py": "the same act, over the API",
        "web/src/cambist_web/outbound_views.py": "the same act, as it is shown",
        "tests/support/forgotten.py": "does it",
        "tests/core/test_exchanges_forgotten.py": "does it",
        "tests/web/test_outbound.py": "does it over the API",
    },
    "look": {
        "look_up": "ask a table, an index or a name server",
        "look_after": "see to something until it ends",
        "look_back": "compare with what was before",
        "look_over": "see whether a page is whole",
        "looking_up": "as look_up",
    },
    "turn": {
        f"{S}exchanges/": "the right of one exchange to use an allowance",
        "core/src/cambist/db/models/exchanges.py": "the same right, in the exchange's row",
        "core/src/cambist/domain/intents.py": "what merchants are told that waits for its turn: `turn`",
        "out_of_turn": "a request budget is used up",
        "in_turn": "one after the other",
        "turn_on": "switch on",
        "plugins/evm/src/cambist_evm/simulation.py": "one after the other",
        "devnets/tron/tests/test_contracts.py": "a number of a loop",
        "tests/": "whoever takes turns in a test",
    },
    "hold": {
        "devnets/tron/": "`hold_back`: the test keeps a transaction out of blocks",
        "tests/": "keeps a lock or a row while others wait for it",
    },
    "slot": {
        SENDING: "a nonce slot",
        "core/src/cambist/db/models/outbound.py": "a nonce slot",
        "core/src/cambist/domain/allocation.py": "nonce slots that are open",
        "core/src/cambist/signer/": "a nonce slot, as the signer names it",
        "core/src/cambist/testing/memory/pool.py": "a sender and its sequence",
        f"{S}recovery/reconcile/books.py": "a nonce slot",
        "devnets/tron/": "three seconds of TRON's, in which one block may be made; or a word of a contract's storage",
        "tests/": "a nonce slot",
        "__slots__": "Python's own",
    },
    "target": {
        f"{S}webhooks/": "where an event goes",
        f"{S}trackers/": "which URLs of trackers are allowed",
        f"{S}receiving/payments/": "which URLs of payments are allowed",
        f"{S}identity/projects.py": "which URLs of projects are allowed",
        "core/src/cambist/db/models/webhooks.py": "where an event goes",
        "core/src/cambist/settings/": "which URLs webhooks may go to",
        "web/src/cambist_web/api/trackers.py": "which URLs of trackers are allowed",
        "devnets/tron/": "the address that a frame of the virtual machine runs at, as the EVM's own tests call it",
        "bench/": "where a process or a file goes",
        "plugins/": "Python's own, or what a test changes",
        "tests/": "what a test aims at",
    },
    "desk": {},
    "site": {
        "web/src/cambist_web/fetch_site.py": "the browser's own word: Sec-Fetch-Site",
        "tasks/src/cambist_tasks/metrics.py": "aiohttp's own: TCPSite",
        "devnets/tron/src/cambist_tron_node/http.py": "aiohttp's own: TCPSite",
        "plugins/evm/src/cambist_evm/testing/proxy.py": "aiohttp's own: TCPSite",
        "plugins/tron/tests/canned.py": "aiohttp's own: TCPSite",
        "tests/core/conftest.py": "Python's own: site-packages",
        "tests/core/test_plugin_project.py": "Python's own: site-packages",
        "tests/web/test_sessions.py": "the browser's own word: Sec-Fetch-Site",
    },
    "purse": {},
    "burden": {},
    "thirsty": {},
    "bury": {},
    "astray": {},
    "afloat": {},
    "chore": {},
}
FORMS: Mapping[str, tuple[str, ...]] = {
    "settle": ("settle", "settles", "settled", "settling", "settlement", "settlements", "unsettle", "unsettled"),
    "look": ("look", "looks", "looking"),
    "hold": ("hold",),
    "bury": ("bury", "buried"),
}


def defined(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each name that a file defines, and where."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno


@cache
def names() -> list[tuple[str, str, int]]:
    """Return every name, with its file and line; not the names of tests, which are sentences."""
    found = []
    for path in FILES:
        file = str(path.relative_to(ROOT))
        for name, line in [(path.stem, 0), *defined(ast.parse(path.read_text()))]:
            if not name.startswith("test_"):
                found.append((file, name, line))
    return found


@cache
def words(name: str) -> list[str]:
    """Return the words of a name, in lower case, however it is written."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def test_names_are_read_word_by_word():
    assert words("_lookUp") == words("look_up") == words("LOOK_UP") == ["look", "up"]
    assert words("HTTPSite2") == ["http", "site"]
    assert dict(defined(ast.parse("class A:\n    def b(self, c): self.d = e = 1"))).keys() == set("Abcde") | {"self"}


@pytest.mark.parametrize("word", BANNED)
def test_a_word_of_the_old_vocabulary_is_no_name_outside_its_room(word):
    forms, allowed = set(FORMS.get(word, (word, f"{word}s"))), BANNED[word]
    found, used = [], set()
    for file, name, line in names():
        if not forms & set(words(name)):
            continue
        why = [one for one in allowed if file.startswith(one) or "_".join(words(name)) == "_".join(words(one))]
        used |= set(why)
        if not why:
            found.append(f"{file}:{line}: {name}")
    assert found == []
    assert set(allowed) - used == set(), "allowed, and nobody uses it any more"


def test_no_row_is_read_by_number():
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in FILES
        if "src" in file.parts and "testing" not in file.parts
        if "row[" in (text := file.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "row"
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, int)
    ]
    assert found == []


SHARED = {
    "BPS": "the same number: hundredths of a percent in one",
    "EVENTS": "of payments, and those of all that has events",
    "EXTENDED_EVENTS": "likewise, for who wants to hear of each step",
    "SENTENCES": "what is said of a code: of why something failed, and of why it is refused",
}


def test_a_constant_of_the_domain_has_one_meaning():
    owners: dict[str, set[str]] = {}
    for path in sorted((ROOT / "core/src/cambist/domain").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for one in targets:
                if isinstance(one, ast.Name) and one.id.isupper() and not one.id.startswith("_"):
                    owners.setdefault(one.id, set()).add(path.name)
    assert {name for name, files in owners.items() if len(files) > 1} == set(SHARED)
