"""Answers of nodes with one thing changed in them: what a decoder has to refuse, or to take for what it then says."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from cambist.plugin import ChainError

Json: TypeAlias = Any
Path: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""

HOSTILE: Sequence[Json] = (
    *("", "0x", "0x0", "-0x5", "0x_1", "10", "0x\uff11", "null", "\ud7ff"),
    *("0x1" + "0" * 64, "0x" + "f" * 64, "1" * 5000),
    *(None, 0, 1, -1, 10**30, 1.5, True, [], {}),
)  # fmt: skip
"""What stands in a value's place."""


FREE_SHARE = 0.2
"""Of the changes, how many are made where they may go unnoticed."""


@dataclass(frozen=True)
class Question:
    """Something that is asked of a node, and what it answers.

    ``ask`` puts the question to a node that answers so, and returns what was understood. ``free`` is a pattern of the
    paths, their steps joined by spaces, of which nothing else in the answers speaks: there one node alone can say what
    it likes, as long as it is well-formed, for which ``forms`` has a pattern by the path's last name.
    """

    answers: Mapping[str, Json]
    ask: Callable[[Mapping[str, Json]], Awaitable[Hashable]]
    free: str
    forms: Mapping[str, str]

    def is_free(self, path: Path) -> bool:
        """Return whether nothing else speaks of what stands there."""
        return re.fullmatch(self.free, " ".join(map(str, path)), re.ASCII) is not None

    def could_be(self, path: Path, answers: Mapping[str, Json]) -> bool:
        """Return whether answers that were changed at this path are those of a chain that could be."""
        if not self.is_free(path):
            return False
        try:
            value = value_at(answers, path)
        except (LookupError, TypeError):
            value = None
        if value is None or isinstance(value, dict | list):
            return True
        name = next((str(step) for step in reversed(path) if isinstance(step, str)), "")
        form = self.forms.get(name)
        return form is None or re.fullmatch(form, str(value), re.ASCII) is not None


async def play(question: Question, random: Random, cases: int) -> Counter[str]:
    """Change the answers so many times, and return how often that was refused, told the same, or could be.

    Raises AssertionError where a change goes unnoticed, and whatever is raised that is no ChainError.
    """
    honest = await question.ask(question.answers)
    everywhere = [path for path in paths_in(question.answers) if len(path) > 1]
    free = [path for path in everywhere if question.is_free(path)]
    text = json.dumps(question.answers)
    outcomes: Counter[str] = Counter()
    for _ in range(cases):
        answers = json.loads(text)
        path = random.choice(free if free and random.random() < FREE_SHARE else everywhere)
        mutate(answers, path, random)
        try:
            found = await question.ask(answers)
        except ChainError:
            outcomes["refused"] += 1
            continue
        outcome = "same" if found == honest else "could be"
        if outcome == "could be" and not question.could_be(path, answers):
            raise AssertionError(f"unnoticed at {path}, which was {value_at(question.answers, path)!r}: {found}")
        outcomes[outcome] += 1
    return outcomes


def paths_in(answer: Json, above: Path = ()) -> Iterator[Path]:
    """Yield the path of every value in an answer but the answer itself."""
    if above:
        yield above
    if isinstance(answer, dict):
        for key, value in answer.items():
            yield from paths_in(value, (*above, key))
    elif isinstance(answer, list):
        for index, value in enumerate(answer):
            yield from paths_in(value, (*above, index))


def value_at(answer: Json, path: Path) -> Json:
    """Return the value at a path. Raises LookupError or TypeError where there is none."""
    for step in path:
        answer = answer[step]
    return answer


def mutate(answer: Json, path: Path, random: Random) -> None:
    """Change an answer in place: the value at a path is left out, doubled, moved, cut, or another stands there."""
    holder, last = value_at(answer, path[:-1]), path[-1]
    kind = random.random()
    if isinstance(holder, list) and len(holder) > 1 and kind < 0.5:
        _rearrange(holder, int(last), random)
    elif isinstance(holder, dict) and kind < 0.1:
        del holder[last]
    else:
        holder[last] = _changed(holder[last], random)


def _rearrange(holder: list[Json], at: int, random: Random) -> None:
    other = random.randrange(len(holder))
    how = random.randrange(4)
    if how == 0:
        del holder[at]
    elif how == 1:
        holder.insert(other, copy.deepcopy(holder[at]))
    elif how == 2:
        holder[at], holder[other] = holder[other], holder[at]
    else:
        holder[at] = copy.deepcopy(holder[other])


def _changed(value: Json, random: Random) -> Json:
    """Return something else than a value: of its kind or of another."""
    if isinstance(value, str) and len(value) > 3 and random.random() < 0.6:
        at = random.randrange(2, len(value))
        return random.choice(
            [
                value[:at] + random.choice("0123456789abcdef") + value[at + 1 :],
                value[:at],
                value + "0" * random.choice([1, 64, 5000]),
                value.upper(),
                value[:at] + " " + value[at + 1 :],
                value[:at] + "g" + value[at + 1 :],
            ]
        )
    if isinstance(value, int) and not isinstance(value, bool) and random.random() < 0.5:
        return random.choice([value + 1, value - 1, -value, value * 1000, 2**63 - 1, 2**63])
    return random.choice([*HOSTILE, [value], {"0": value}])
