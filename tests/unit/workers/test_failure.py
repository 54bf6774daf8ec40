"""Errors that cross a process border: they arrive as what they are, as far as that can be told, and none runs amok."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from stoker.workers.failure import error_line, ordinary, pack_error, story, unpack_error
from tests.errors import (
    Choosy,
    Exiting,
    Interrupting,
    Killing,
    MyGroup,
    Secretive,
    Silent,
    Slotted,
    Stubborn,
    TwoBases,
    Unstable,
)


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def caught(work) -> BaseException:
    try:
        work()
    except BaseException as error:
        return error
    raise AssertionError("it raised nothing")


def sent(error: BaseException) -> BaseException:
    return unpack_error(pack_error(raised(error)))


@pytest.mark.parametrize(
    "error",
    [
        *(Silent("m", 1), Secretive("m", 1), Stubborn("m", 1), Exiting("m", 1), Killing("m", 1), Interrupting("m", 1)),
        *(Choosy("m", 7), Slotted(7), TwoBases(2, "m"), Unstable("m"), KeyError("k"), StopIteration(3), SystemExit(5)),
        *(GeneratorExit(), KeyboardInterrupt("m"), BaseException("m"), OSError(2, "m", "file"), ConnectionError("m")),
        caught(lambda: b"\xff".decode()),
        caught(lambda: compile("a b", "file.py", "exec")),
        caught(lambda: __import__("no_such_module")),
        caught(lambda: os.stat("/no/such/file")),
        caught(lambda: __import__("json").loads("{")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_keeps_its_type_arguments_and_attributes(error):
    again = sent(error)
    assert type(again) is type(error)
    assert again.args == error.args
    for name in ("code", "errno", "filename", "start", "reason", "lineno", "name", "value", "doc"):
        assert getattr(again, name, None) == getattr(error, name, None)
    assert "the worker's own traceback" in again.__notes__[-1]
    if not isinstance(error, Unstable):
        assert error_line(again) == error_line(error)


def test_a_note_that_is_none_does_not_keep_others_from_being_added():
    error = ValueError("m")
    error.__notes__ = 3
    assert sent(error).__notes__[-1].startswith("stoker: the worker's own traceback")


def test_groups_travel_member_by_member():
    group = MyGroup("two", [Exiting("a"), ExceptionGroup("inner", [KeyError("b")])], 7)
    again = sent(group)
    assert type(again) is MyGroup
    assert str(again) == "two (2 sub-exceptions)"
    assert again.code == 7
    assert type(again.exceptions[0]) is Exiting
    assert again.exceptions[1].exceptions[0].args == ("b",)


def test_groups_without_end_are_cut_short():
    wide = sent(ExceptionGroup("wide", [ValueError(n) for n in range(3000)]))
    assert len(wide.exceptions) == 3000
    deep: Exception = ValueError("bottom")
    for _ in range(200):
        deep = ExceptionGroup("deep", [deep])
    assert type(sent(deep)) is ExceptionGroup


def test_causes_and_contexts_travel_too():
    def fail():
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise Exiting("outer") from inner

    again = sent(caught(fail))
    assert type(again.__cause__) is KeyError
    assert again.__context__ is again.__cause__
    assert again.__suppress_context__
    error = ValueError("its own")
    error.__cause__ = error
    assert type(sent(error).__cause__) is ValueError


class ArgumentThatExits:
    def __reduce__(self):
        return sys.exit, (3,)


@pytest.mark.parametrize("argument", [threading.Lock(), ArgumentThatExits(), lambda: threading.Lock()])
def test_what_cannot_travel_is_told_by_its_looks(argument):
    error = ValueError("m", argument)
    error.detail = argument
    again = sent(error)
    assert again.args[0] == "m"
    if not callable(argument):
        assert again.args[1] == again.detail == repr(argument)


def test_huge_arguments_and_messages_do_not_travel_whole():
    error = ValueError(np.zeros(10**7), "x" * 10**7)
    error.detail = b"x" * 10**7
    packed = pack_error(raised(error))
    assert len(packed) < 2**20
    assert type(unpack_error(packed)) is ValueError
    assert len(error_line(ValueError("x" * 10**7))) < 2**17
    assert len(story(ValueError("x" * 10**7))) < 2**19


def test_exceptions_among_the_arguments_travel_in_pieces_as_well():
    error = ValueError(Exiting("inner"))
    error.original = Exiting("inner")
    again = sent(error)
    assert type(again.args[0]) is type(again.original) is Exiting


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("class Here(LookupError): pass", "LookupError: Here: m"),
        ("class Here(__import__('decimal').DecimalException): pass", "DecimalException: Here: m"),
        ("class Here(UnicodeDecodeError): __init__ = ValueError.__init__", "UnicodeError: Here: "),
        ("class Here(BaseException): pass", "BaseException: Here: m"),
    ],
)
def test_a_class_that_the_reader_cannot_import_arrives_as_its_nearest_base(tmp_path, code, expected):
    (tmp_path / "only_in_the_worker.py").write_text(code)
    worker = """
        import sys
        sys.path.insert(0, sys.argv[1])
        from only_in_the_worker import Here
        from stoker.workers.failure import pack_error
        error = Here.__new__(Here, *("utf-8", b"m", 0, 1, "m")) if issubclass(Here, UnicodeError) else Here("m")
        error.code = 7
        sys.stdout.buffer.write(pack_error(error))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(worker), str(tmp_path)], capture_output=True, check=True, timeout=60
    )
    error = unpack_error(done.stdout)
    assert error_line(error).startswith(expected)
    assert error.code == 7
    assert "only_in_the_worker.Here" in error.__notes__[-1]


def test_what_would_end_the_consumers_loop_or_program_is_a_runtime_error():
    for error in (StopIteration(), StopAsyncIteration(), SystemExit(3), KeyboardInterrupt(), GeneratorExit()):
        told = ordinary(error)
        assert type(told) is RuntimeError
        assert told.__cause__ is error
    assert isinstance(ordinary(Secretive("m")), Secretive)

    class Nameless(BaseException):
        __repr__ = Secretive.__repr__

    assert "Nameless whose repr() failed" in str(ordinary(Nameless()))
