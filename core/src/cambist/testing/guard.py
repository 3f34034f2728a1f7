"""What all kits share: a subclass cannot quietly leave out, replace or weaken a test of the kit.

A kit's test that does not hold for a plugin is declared, with the reason::

    class TestExampleChain(ChainConformance):
        deviations = {"test_a_transfer_of_zero_is_not_taken": "the node refuses to mine one"}

A declared test that the subclass does not define is expected to fail, and fails the run as soon as it passes:
a reason that is gone must be deleted. A declared test that it does define replaces the kit's. Anything else,
an undeclared override or a deviation from a test that does not exist, is a TypeError when the class is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

_KIT = "cambist.testing."


class Conformance:
    """Base of every kit. Needs pytest-asyncio, with ``asyncio_mode = "auto"`` or a ``pytestmark`` of your own."""

    deviations: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401 - passed on
        """Refuse a class that deviates without saying so."""
        super().__init_subclass__(**kwargs)
        if problems := _problems(cls):
            raise TypeError(f"{cls.__qualname__}: " + "; ".join(problems))

    @pytest.fixture(autouse=True)
    def _declared_deviation(self, request: pytest.FixtureRequest) -> None:
        name = request.node.originalname
        if name in self.deviations and getattr(type(self), name) is _kit_tests(type(self)).get(name):
            request.node.add_marker(pytest.mark.xfail(reason=self.deviations[name], strict=True))

    def test_no_test_of_the_kit_is_overridden_quietly(self) -> None:
        """A test that was replaced after the class was made is found here."""
        assert _problems(type(self)) == []


def _kit_tests(cls: type) -> dict[str, Any]:
    """Return the tests of the kit that the class descends from; the most derived kit class wins."""
    tests: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith(_KIT):
            tests |= {name: value for name, value in vars(base).items() if name.startswith("test_")}
    return tests


def _problems(cls: type[Conformance]) -> list[str]:
    if cls.__module__.startswith(_KIT):
        return []
    tests = _kit_tests(cls)
    problems = [f"{name} is no test of the kit to deviate from" for name in cls.deviations if name not in tests]
    problems += [f"{name} deviates without a reason" for name, reason in cls.deviations.items() if not reason.strip()]
    problems += [
        f"{name} overrides a test of the kit; declare it in deviations, with the reason"
        for name, test in tests.items()
        if getattr(cls, name, None) is not test and name not in cls.deviations
    ]
    if "_declared_deviation" in _names_below_the_kit(cls):
        problems.append("_declared_deviation belongs to the kit")
    return problems


def _names_below_the_kit(cls: type) -> set[str]:
    return {name for base in cls.__mro__ if not base.__module__.startswith(_KIT) for name in vars(base)}
