"""The bar of ``progress=True``: in a terminal, beside other displays, in a notebook, and where there is none."""

from __future__ import annotations

import io
import pickle
import re
import subprocess
import sys
import textwrap
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import stoker
from stoker.observe import bar as bars
from stoker.observe.pace import Pace
from stoker.observe.screen import found_screen
from tests.observe.terminals import QUICK, shown

SUMMARY = r"epoch {}: {} batches in 0:00:\d\d, [\d.,]+ batches/s, waited \d+%"
LINE = re.compile(r"epoch \d [━╸╺]+ +\d+/\d+  \S+ batches/s  waits \d+%")


def test_a_bar_is_drawn_and_a_line_stays():
    terminal = shown("""
        import numpy as np, stoker, threading
        with stoker.Loader(np.arange(40), 4, workers=stoker.Threads(1), progress=True) as loader:
            for _ in range(2):
                for batch in loader:
                    threads = threading.active_count()
        assert threads == 2, "the worker's, and none for the bar"
    """)
    assert any(LINE.search(screen) for screen in terminal.seen)
    first, second = terminal.text
    assert re.fullmatch(SUMMARY.format(0, 10), first)
    assert re.fullmatch(SUMMARY.format(1, 10), second)
    assert (terminal.row, terminal.column) == (2, 0)


def test_what_is_printed_stays_above_the_bar_and_whole():
    terminal = shown("""
        import numpy as np, stoker, sys
        with stoker.Loader(np.arange(40), 1, progress=True) as loader:
            for number, batch in enumerate(loader):
                print(f"step {number}", file=sys.stderr if number % 2 else sys.stdout, flush=True)
        print("dots", end="")
        for batch in loader.__class__(np.arange(4), 1, progress=True):
            print(".", end="", flush=True)
        print()
    """)
    assert terminal.text[-2].startswith("epoch 0: 40 batches")
    steps = [line for line in terminal.text if line.startswith("step")]
    assert len(steps) >= 20
    assert steps == [f"step {k}" for k in range(40)][-len(steps) :]
    assert not any("━" in line for line in terminal.text)
    assert terminal.text[-1].startswith("dots....")


@pytest.mark.parametrize(
    "ending",
    [
        "for batch in loader:\n    break",
        "try:\n    for batch in loader:\n        1 / 0\nexcept ZeroDivisionError:\n    pass",
        "iterator = iter(loader); next(iterator); next(iterator); loader.close()",
        "iterator = iter(loader); next(iterator); next(iterator); del iterator",
        "iterator = iter(loader); next(iterator); next(iterator); iterator = iter(loader)",
        "iterator = iter(loader); next(iterator); next(iterator); loader = iterator = None",
        "iterator = iter(loader); next(iterator); next(iterator)",  # the end of the program
    ],
)
def test_it_ends_cleanly(ending):
    script = "import numpy as np, stoker\nloader = stoker.Loader(np.arange(40), 4, progress=True)\n" + ending
    terminal = shown(script + "\nprint('done', flush=True)\n")
    text = terminal.text
    assert not any("━" in line for line in text)
    assert "done" in text
    assert sum("of 10 batches" in line for line in text) == 1
    assert terminal.column == 0


def test_an_error_in_the_dataset_ends_it():
    terminal = shown(
        """
        import stoker
        class Broken:
            def __len__(self): return 8
            def __getitem__(self, index): return 1 / (index - 5)
        for batch in stoker.Loader(Broken(), 1, progress=True):
            pass
        """,
        code=1,
    )
    assert not any("━" in line for line in terminal.text)
    assert any("5 of 8 batches" in line for line in terminal.text)


@pytest.mark.parametrize("outside", [True, False])
def test_bars_of_tqdm_are_left_alone(outside):
    terminal = shown(f"""
        import numpy as np, stoker, tqdm
        with stoker.Loader(np.arange(40), 4, progress=True) as loader:
            if {outside}:
                for batch in tqdm.tqdm(loader, mininterval=0, ascii=True):
                    pass
            else:
                for batch in loader:
                    for step in tqdm.tqdm(range(3), mininterval=0, ascii=True, leave=True):
                        pass
    """)
    bars_of_tqdm = [line for line in terminal.text if "it/s]" in line]
    assert len(bars_of_tqdm) == (1 if outside else 10)
    expected = r"100%\|#+\| (10/10|3/3) \[\S+, \S+it/s\]"
    assert all(re.fullmatch(expected, line) for line in bars_of_tqdm), terminal.text
    assert sum("10 batches in" in line for line in terminal.text) == 1
    assert not any("━" in line for line in terminal.text)
    assert outside <= (not terminal.seen)


@pytest.mark.parametrize(
    "console", ["rich.get_console()", "rich.console.Console()", "rich.console.Console(stderr=True)"]
)
def test_live_displays_of_rich_are_left_alone(console):
    terminal = shown(f"""
        import numpy as np, rich, rich.console, rich.progress, stoker
        console = {console}
        with stoker.Loader(np.arange(40), 4, progress=True) as loader:
            with rich.progress.Progress(auto_refresh=False, console=console) as progress:
                task = progress.add_task("mine", total=10)
                for batch in loader:
                    progress.update(task, advance=1, refresh=True)
    """)
    assert terminal.seen == []
    assert [line for line in terminal.text if line.startswith("mine")] == [terminal.text[-1]]
    assert "100%" in terminal.text[-1]
    assert terminal.text[0].startswith("epoch 0: 10 batches")


def test_items_of_unknown_number_are_counted():
    terminal = shown("""
        import stoker
        with stoker.stream(abs, (k for k in range(7)), progress=True) as results:
            assert len(list(results)) == 7
        with stoker.stream(abs, [1, 2], progress=True, keep_workers=True) as results:
            list(results)
            results.restart([3])
            list(results)
    """)
    assert [line.partition(" in ")[0] for line in terminal.text] == [
        "abs: 7 batches",
        "abs: 2 batches",
        "abs: 1 batches",
    ]


def test_a_resumed_epoch_begins_where_it_was():
    terminal = shown("""
        import functools, numpy as np, stoker
        make = functools.partial(np.arange, 40)
        with stoker.Loader(make, 4, shuffle=True) as loader:
            iterator = iter(loader)
            next(iterator), next(iterator), next(iterator)
            state = loader.state_dict()
        with stoker.Loader(make, 4, shuffle=True, progress=True) as loader:
            loader.load_state_dict(state)
            list(loader)
    """)
    assert " 4/10" in terminal.seen[0] or " 3/10" in terminal.seen[0]
    assert terminal.text[-1].startswith("epoch 0: 10 batches")


def test_only_the_first_shard_shows_it():
    terminal = shown("""
        import numpy as np, stoker
        for shard in ((0, 2), (1, 2)):
            list(stoker.Loader(np.arange(40), 4, progress=True, shard=shard))
    """)
    assert [line.partition(" in ")[0] for line in terminal.text] == ["epoch 0: 5 batches"]


def test_without_a_terminal_it_is_silent():
    script = QUICK + textwrap.dedent("""
        import numpy as np, stoker
        for batch in stoker.Loader(np.arange(40), 4, progress=True):
            pass
    """)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=True)
    assert (ran.stdout, ran.stderr) == (b"", b"")


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_nowhere_to_draw_is_no_error(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)
    assert found_screen() is None


def test_a_terminal_that_fails_does_not_end_the_training(monkeypatch):
    class Gone:
        def draw(self, figures):
            raise OSError("the terminal is gone")

    monkeypatch.setattr(bars, "_FIRST_S", 0.0)
    monkeypatch.setattr(bars, "found_screen", Gone)
    with stoker.Loader(np.arange(8), 4, progress=True) as loader:
        assert len(list(loader)) == 2


def test_in_a_notebook_one_output_is_changed(monkeypatch):
    outputs: list[str] = []

    def display(content, *, raw, display_id):
        assert raw
        assert display_id
        outputs.append(content["text/plain"])
        return SimpleNamespace(update=lambda content, raw: outputs.__setitem__(-1, content["text/plain"]))

    fake = ModuleType("IPython.display")
    fake.display = display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(bars, "_FIRST_S", 0.0)
    monkeypatch.setattr(bars, "_AGAIN_S", 0.0)
    with stoker.Loader(np.arange(8), 4, progress=True) as loader:
        iterator = iter(loader)
        next(iterator), next(iterator)
        assert re.fullmatch(r"epoch 0 \|█+ +\| 1/2  \S+ batches/s  waits \d+%  0:00:00 left", outputs[0])
        assert next(iterator, None) is None
    assert len(outputs) == 1
    assert outputs[0].startswith("epoch 0: 2 batches in 0:00:00")


def test_rate_and_waiting_are_those_of_the_last_seconds():
    pace = Pace("epoch 3", done=100, batches=1000, waited=5.0, time=0.0)
    pace.total = 1000
    for second in range(1, 61):
        figures = pace.look(1000 + 10 * second, 5.0 + 0.25 * second, float(second))
    assert figures.done == 700
    assert (figures.rate, figures.waited) == (pytest.approx(10.0), pytest.approx(0.25))
    assert figures.texts == ["700/1,000", "10 batches/s", "waits 25%", "0:00:30 left"]
    none = Pace("epoch 3", done=0, batches=0, waited=0.0, time=0.0).whole(0, 0.0, 0.0)
    assert none.summary == "epoch 3: 0 batches in 0:00:00, waited 0%"
    assert none.texts == ["0", "0 batches/s", "waits 0%"]
    figures = pace.look(1600, 25.0, 65.0)
    assert figures.rate < 10
    assert pace.whole(1600, 20.0, 60.0).summary == "epoch 3: 700 of 1,000 batches in 0:01:00, 10 batches/s, waited 25%"


def test_a_loader_whose_bar_was_not_drawn_yet_can_be_pickled():
    with stoker.Loader(np.arange(8), 4, progress=True) as loader:
        iterator = iter(loader)
        with pickle.loads(pickle.dumps(loader)) as other:
            assert len(list(other)) == 2
        assert len(list(iterator)) == 2


def test_it_must_be_true_or_false():
    with pytest.raises(TypeError, match="progress='yes'"):
        stoker.Loader(np.arange(8), progress="yes")
