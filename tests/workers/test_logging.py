"""Workers log and warn as the training process is set up to, at the time when they start."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

LIBRARY = """
    import logging, warnings

    log = logging.getLogger("library")
    log.addHandler(logging.StreamHandler())  # at import, as some do: here and in each worker
    log.setLevel(logging.ERROR)

    class Odd(Warning):
        pass

    class Upper(logging.Formatter):
        def format(self, record):
            return super().format(record).upper()

    def work(item):
        logging.getLogger().info("root info %d", item)
        logging.getLogger().debug("root debug %d", item)
        log.info("library info %d", item)
        logging.getLogger("chatty").warning("chatty %d", item)
        logging.getLogger("silent").critical("silent %d", item)
        logging.getLogger("aside").info("aside %d", item)
        logging.getLogger("elsewhere").info("elsewhere %d", item)
        logging.getLogger("rotated").warning("rotated %d", item)
        logging.getLogger("hidden").warning("hidden %d", item)
        warnings.warn(f"user warning {item}", UserWarning)
        warnings.warn(f"odd warning {item}", Odd)
        try:
            warnings.warn(f"deprecated {item}", DeprecationWarning)
        except DeprecationWarning as error:
            return f"{error} is an error"
        return "nothing"
"""

LATE = """
    import logging

    log = logging.getLogger("late")
    log.setLevel(logging.ERROR)
    log.addHandler(logging.StreamHandler())
    log.propagate = False

    class Formatter(logging.Formatter):
        def format(self, record):
            return "late formatter: " + super().format(record)
"""

PROGRAM = """
    import logging, logging.handlers, sys, threading, warnings
    import library, late, stoker

    class Lost(logging.Handler):
        def __init__(self):
            super().__init__()
            self.lock_of_its_own = threading.Lock()
        def emit(self, record):
            pass

    class Locked(logging.Filter):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()

    logging.basicConfig(filename="all.log", filemode="w", level=logging.INFO, format="%(levelname)s|%(message)s")
    logging.info("consumer info")
    library.log.setLevel(logging.INFO)
    library.log.handlers[0].setFormatter(library.Upper("%(message)s"))
    late.log.setLevel(logging.INFO)
    late.log.handlers[0].setFormatter(late.Formatter())
    logging.getLogger("chatty").setLevel(logging.ERROR)
    logging.getLogger("silent").disabled = True
    aside = logging.getLogger("aside")
    aside.propagate = False
    aside.addHandler(logging.StreamHandler(sys.stdout))
    aside.addFilter(lambda record: "1" in record.getMessage())
    elsewhere = logging.getLogger("elsewhere")
    elsewhere.propagate = False
    elsewhere.addHandler(Lost())
    rotated = logging.getLogger("rotated")
    rotated.addHandler(logging.handlers.RotatingFileHandler("rotated.log"))
    rotated.propagate = False
    logging.getLogger("hidden").addFilter(Locked())
    warnings.simplefilter("error", DeprecationWarning)
    warnings.filterwarnings("ignore", "user warning", UserWarning)
    warnings.simplefilter("ignore", library.Odd)

    def work(item):
        done = library.work(item)
        import late
        late.log.info("late %d", item)
        return done

    with stoker.stream(work, range(2), workers=stoker.Processes(1, start=sys.argv[1])) as results:
        print(*results, sep="\\n", flush=True)
    logging.info("consumer again")
"""


@pytest.mark.parametrize("start", ["nursery", "spawn", "fork"])
def test_levels_handlers_and_filters_are_those_of_the_training_process(tmp_path: Path, start: str):
    for name, text in (("library", LIBRARY), ("late", LATE), ("train", PROGRAM)):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    ran = subprocess.run(
        [sys.executable, "-W", "always", "train.py", start], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.split("\n")) == ["", "aside 1", "deprecated 0 is an error", "deprecated 1 is an error"]
    logged = (tmp_path / "all.log").read_text().split("\n")
    hidden = [line for line in logged if "hidden" not in line and "log filter" not in line]
    assert hidden == [
        "INFO|consumer info",
        *("INFO|root info 0", "INFO|library info 0", "INFO|root info 1", "INFO|library info 1"),
        *("INFO|consumer again", ""),
    ]
    if start != "fork":
        assert not any("hidden" in line for line in logged)
        assert sum("the log filter Locked cannot be pickled" in line for line in logged) == 1
    told = ran.stderr.split("\n")
    fallback = ["INFO:elsewhere:elsewhere 0", "INFO:elsewhere:elsewhere 1"] if start != "fork" else []
    late = ["late formatter: late 0", "late formatter: late 1"]
    assert sorted(told) == sorted(["", "LIBRARY INFO 0", "LIBRARY INFO 1", *late, *fallback])
    assert (tmp_path / "rotated.log").read_text() == "rotated 0\nrotated 1\n"
