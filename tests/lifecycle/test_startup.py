"""Workers start in whatever state a program and its machine are, and as the program's own interpreter was started."""

from __future__ import annotations

import resource

import numpy as np
import pytest

from stoker import Loader, Rotation, StartError
from tests.datasets import Rows
from tests.lifecycle.scripts import SOURCE, run, write

STARTS = ("nursery", "fork", "spawn")
ASKED = f"""
import os, sys
sys.path.insert(0, {SOURCE!r})
import stoker

class Asked:
    def __len__(self):
        return 1

    def __getitem__(self, index):
        flags = [(name, getattr(sys.flags, name)) for name in dir(sys.flags) if name[0] != "_" and name[:2] != "n_"]
        flags = [(name, value) for name, value in flags if isinstance(value, int)]
        return repr((flags, sorted(set(sys.warnoptions)), sorted(sys._xoptions.items()), __debug__))

def ask(start):
    with stoker.Loader(Asked(), 1, workers=stoker.Processes(1, start=start)) as loader:
        return next(iter(loader))[0]
"""


@pytest.mark.parametrize(
    "flags",
    [
        ["-O"],
        ["-OO", "-B", "-W", "error::FutureWarning", "-W", "ignore:a message:UserWarning"],
        ["-I"],
        ["-E", "-s", "-b"],
        ["-P", "-X", "utf8=1", "-X", "int_max_str_digits=5000", "-X", "anything"],
        ["-X", "dev", "-W", "ignore"],
    ],
    ids=" ".join,
)
def test_the_flags_of_the_interpreter_are_those_of_its_workers(flags, tmp_path):
    code = f"{ASKED}\nprint(ask('nursery') == ask('spawn') == Asked()[0])\n"
    write(tmp_path, {"train.py": code})
    assert run(tmp_path, [*flags, "train.py"]) == (0, "True\n", "")


def test_unbuffered_output_is_unbuffered_in_workers(tmp_path):
    code = ASKED.replace("return repr(", "return repr(sys.stdout.write_through) #")
    write(tmp_path, {"train.py": f"{code}\nprint(ask('nursery'), ask('spawn'))\n"})
    assert run(tmp_path, ["-u", "train.py"]) == (0, "True True\n", "")
    assert run(tmp_path, ["train.py"]) == (0, "False False\n", "")


STRANGE = {
    "a deleted folder": "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
    "a path of 300 KB": "sys.path += [f'/nowhere/{k}' + 'x' * 100 for k in range(3000)]",
    "a folder in the path that is no text": "import pathlib; sys.path.append(pathlib.Path('/nowhere'))",
    "a variable of 300 KB": "os.environ['STOKER_TEST_LONG'] = 'x' * 300_000",
    "2,000 open files": "[os.open('/dev/null', os.O_RDONLY) for _ in range(2000)]",
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("what", STRANGE)
def test_workers_start_with(what, start, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip(f"the limit of open files is {hard}")
    code = f"""{ASKED}
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({max(soft, 4096)}, {hard}))
{STRANGE[what]}
with stoker.Loader(list(range(8)), 4, workers=stoker.Processes(2, start={start!r})) as loader:
    print([batch.tolist() for batch in loader])
"""
    write(tmp_path, {"train.py": code})
    assert run(tmp_path, ["train.py"]) == (0, "[[0, 1, 2, 3], [4, 5, 6, 7]]\n", "")


def test_a_long_variable_is_there_when_a_module_is_imported(tmp_path):
    module = "import os\nLONG = os.environ['STOKER_TEST_LONG']\ndef work(item):\n    return len(LONG)\n"
    train = """
        import os, stoker
        os.environ["STOKER_TEST_LONG"] = "x" * 300_000
        import module
        for start in ("nursery", "spawn"):
            print([int(n) for n in stoker.stream(module.work, [0], workers=stoker.Processes(1, start=start))])
    """
    write(tmp_path, {"module.py": module, "train.py": train})
    assert run(tmp_path, ["train.py"]) == (0, "[300000]\n[300000]\n", "")


@pytest.mark.parametrize("start", ["nursery", "spawn"])
def test_an_interpreter_that_cannot_import_stoker_says_why(start, tmp_path):
    """As where an upgrade is under way: the training process has imported everything before."""
    code = f"""{ASKED}
sys.path.insert(0, os.getcwd())
os.makedirs("numpy")
open("numpy/__init__.py", "w").write("raise ImportError('a broken installation')")
try:
    ask({start!r})
except stoker.StokerError as error:
    print(type(error).__name__, "a broken installation" in str(error) + "".join(getattr(error, "__notes__", [])))
"""
    write(tmp_path, {"train.py": code})
    status, output, _ = run(tmp_path, ["train.py"])
    assert (status, output) == (0, {"nursery": "StartError True\n", "spawn": "WorkerDied True\n"}[start])


def test_without_an_executable_there_is_an_error_that_says_what_to_pass(monkeypatch):
    monkeypatch.setattr("sys.executable", "")
    with Loader(Rows(8), 4, workers=1) as loader, pytest.raises(StartError, match=r'pass workers=.*start="fork"'):
        next(iter(loader))


# No /proc


def test_big_arrays_travel_without_proc(monkeypatch):
    monkeypatch.setattr("stoker.memory.adoption._MAPS", "/nowhere/maps")
    data = np.arange(2**22 + 1, dtype=np.float64)  # more than 32 MiB
    with Loader(data, 2**22, workers=1) as loader:
        assert [float(batch[-1]) for batch in loader] == [2**22 - 1, 2**22]


def test_rotation_without_proc_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setattr("stoker.memory.descriptors._OPEN_FILES", "/nowhere/fd")
    with (
        Loader(Rows(8), 4, rotation=Rotation(2)) as loader,
        pytest.raises(OSError, match="/proc is not mounted"),
    ):
        next(iter(loader))
