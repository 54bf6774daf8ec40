"""`stoker replay` makes the samples of a quarantine file again, and says which of them still fail."""

from __future__ import annotations

import re
import signal
import subprocess

import pytest

from tests.cli.replaying import command, replay, summary, train

WORKERS = ["0", "2", "stoker.Processes(1, start='fork')"]


# What is told


@pytest.mark.parametrize("workers", WORKERS)
def test_a_factory_with_arguments_is_made_again_and_fails_as_before(folder, workers):
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3, 13])", f"batch_size=5, workers={workers}")
    done = replay(folder)
    assert done.returncode == 1
    assert summary(done) == "2 samples: 2 fail as before"
    lines = done.stdout.splitlines()
    assert lines[0] == "1/2  sample 3 of epoch 0: fails as before: ValueError: shape 3 has no sides"
    assert lines[-3] == "2/2  sample 13 of epoch 0: fails as before: ValueError: shape 13 has no sides"
    assert "\x1b" not in done.stdout


def test_the_traceback_begins_with_the_users_code_and_is_printed_once_for_each_place(folder):
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3, 13])")
    done = replay(folder)
    assert re.findall(r'File ".*/(\w+\.py)", line \d+, in (\w+)', done.stdout) == [
        ("shapes.py", "__getitem__"),
        ("shapes.py", "draw"),
    ]
    assert "  in the same place as sample 3\n" in done.stdout


def test_samples_that_were_mended_work_now(folder):
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3, 13])")
    module = folder / "shapes.py"
    module.write_text(module.read_text().replace("if index in self.bad", "if index in self.bad and index != 3"))
    done = replay(folder)
    assert done.returncode == 1
    assert summary(done) == "2 samples: 1 fails as before, 1 works now"
    assert "sample 3 of epoch 0: works now\n" in done.stdout
    module.write_text(module.read_text().replace("!= 3", "> 20"))
    done = replay(folder)
    assert done.returncode == 0
    assert summary(done) == "2 samples: 2 work now"


def test_another_error_than_before_is_told_with_both(folder):
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3])")
    module = folder / "shapes.py"
    module.write_text(module.read_text().replace("raise ValueError(f", "raise SystemExit(f"))
    done = replay(folder)
    assert done.returncode == 1
    assert summary(done) == "1 sample: 1 fails with another error"
    told = "SystemExit: shape 3 has no sides (before: ValueError: shape 3 has no sides)"
    assert f"fails with another error: {told}\n" in done.stdout


def test_addresses_in_a_message_make_no_other_error(folder):
    module = folder / "shapes.py"
    module.write_text(module.read_text().replace("shape {index} has", "{object()} has"))
    (record,) = train(folder, "functools.partial(shapes.Shapes, 20, bad=[3])")
    assert "object at 0x" in record["error"]
    assert summary(replay(folder)) == "1 sample: 1 fails as before"


def test_messages_are_printed_as_they_are(folder):
    """No markup is made of brackets, and what is no text does not break the printing."""
    module = folder / "shapes.py"
    module.write_text(module.read_text().replace("shape {index} has", r"[red]\udcff " + "long " * 40))
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3])")
    done = replay(folder)
    assert summary(done) == "1 sample: 1 fails as before"
    assert rf"ValueError: [red]\udcff {'long ' * 40} no sides" in done.stdout.splitlines()[0]


# Random numbers: the seed is that of the batch


@pytest.mark.parametrize("workers", WORKERS)
def test_the_first_sample_of_a_batch_draws_the_numbers_that_it_drew_then(folder, workers):
    """What is promised: the seed of the batch. The first sample that draws has the very same numbers."""
    records = train(folder, "functools.partial(shapes.Lucky, 40)", f"batch_size=None, shuffle=True, workers={workers}")
    assert 4 < len(records) < 36
    done = replay(folder)
    assert done.returncode == 1
    assert summary(done) == f"{len(records)} samples: {len(records)} fail as before"


def test_of_a_sample_that_failed_in_several_epochs_the_latest_is_replayed(folder):
    records = train(folder, "functools.partial(shapes.Lucky, 40)", "batch_size=None, seed=3", epochs=4)
    latest = {record["index"]: record for record in records}
    assert len(latest) < len(records)
    done = replay(folder)
    assert summary(done) == f"{len(latest)} samples: {len(latest)} fail as before"
    told = re.findall(r"sample (\d+) of epoch (\d+)", done.stdout)
    assert [(int(index), int(epoch)) for index, epoch in told] == [(k, r["epoch"]) for k, r in latest.items()]


def test_torch_is_seeded_too_where_the_dataset_uses_it(folder):
    pytest.importorskip("torch")
    module = folder / "shapes.py"
    module.write_text("import torch\n" + module.read_text().replace("{index} has", "{torch.rand(3).tolist()} has"))
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[5, 10])", "batch_size=5")
    assert summary(replay(folder)) == "2 samples: 2 fail as before"


# Which samples


def test_just_some_samples(folder):
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3, 5, 7, 9])")
    done = replay(folder, "--index", "7", "3")
    assert re.findall(r"sample (\d+) of", done.stdout) == ["3", "7"]
    assert summary(done) == "2 samples: 2 fail as before"
    done = replay(folder, "--index", "3", "--index", "4", "10")
    assert done.returncode == 2
    assert "quarantine.jsonl has no sample 4, 10" in done.stderr


# Samples that kill or hang


def test_samples_that_had_killed_their_worker_come_last_after_a_warning(folder):
    records = train(folder, "functools.partial(shapes.Shapes, 20, bad=[7], fatal=[2])", "batch_size=5, workers=2")
    assert [record["index"] for record in records] == [2, 7]
    done = replay(folder)
    assert done.returncode == 9  # of the sample itself
    first, *_, warning, last = done.stdout.splitlines()
    assert first.startswith("1/2  sample 7 of epoch 0: fails as before")
    assert warning.startswith("What comes now (sample 2) had killed its worker or made it hang, and may do so")
    assert last == "2/2  sample 2 of epoch 0: begins"


def test_a_crash_shows_its_stack(folder):
    train(folder, "functools.partial(shapes.Shapes, 20, fatal=[2])", "batch_size=5, workers=2")
    module = folder / "shapes.py"
    module.write_text(module.read_text().replace("os._exit(9)", f"os.kill(os.getpid(), {int(signal.SIGSEGV)})"))
    done = replay(folder)
    assert done.returncode == -signal.SIGSEGV
    assert re.search(
        r"Fatal Python error: Segmentation fault\n(?s:.*)shapes\.py\", line \d+ in __getitem__", done.stderr
    )


def test_a_sample_that_had_killed_may_work_now(folder):
    train(folder, "functools.partial(shapes.Shapes, 20, fatal=[2])", "batch_size=5, workers=2")
    module = folder / "shapes.py"
    module.write_text(module.read_text().replace("os._exit(9)", "pass"))
    done = replay(folder)
    assert done.returncode == 0
    assert "sample 2 of epoch 0: works now (before: WorkerDied: it killed its worker by exit code 9" in done.stdout


def test_where_whole_batches_are_asked_for_the_sample_is_asked_for_like_that(folder):
    train(folder, "functools.partial(shapes.Gathered, 20, fatal=[2])", "batch_size=5, workers=2")
    assert replay(folder).returncode == 9


def test_a_batch_that_killed_only_as_a_whole_works_sample_by_sample(folder):
    train(folder, "functools.partial(shapes.Shapes, 20)", "batch_size=5, workers=2, max_deaths=1, collate=shapes.stack")
    done = replay(folder)
    assert done.returncode == 0
    assert summary(done) == "5 samples: 5 work now"
    assert done.stdout.count("together with the others of its batch)\n") == 5


def test_ctrl_c_shows_where_a_sample_hangs(folder):
    options = "batch_size=5, workers=1, timeout=0.3, max_deaths=1"
    records = train(folder, "functools.partial(shapes.Shapes, 20, bad=[1], endless=[2, 3])", options)
    assert [record["index"] for record in records] == [1, 2, 3]
    with subprocess.Popen(command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder) as running:
        assert running.stdout is not None
        told = list(iter(running.stdout.readline, "asleep\n"))
        running.send_signal(signal.SIGINT)
        rest, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert errors == ""
    assert told[-1] == "2/3  sample 2 of epoch 0: begins\n"
    assert "sample 2 of epoch 0: was interrupted (before: WorkerDied: it killed its worker by a timeout" in rest
    assert re.search(r'shapes.py", line \d+, in __getitem__', rest)
    assert rest.splitlines()[-1] == "3 samples: 1 fails as before, 1 was interrupted, 1 not tried"


# The debugger


def test_the_debugger_opens_at_each_failure(folder):
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3, 13])")
    done = replay(folder, "--pdb", typed="p index\nq\nup\np self.n, index\nq\n")
    assert done.returncode == 1
    assert "(Pdb) 3\n(Pdb) 2/2  sample 13 of epoch 0: fails as before" in done.stdout
    assert done.stdout.endswith("(Pdb) (20, 13)\n(Pdb) 2 samples: 2 fail as before\n")


def test_leaving_a_breakpoint_of_the_users_ends_the_replay(folder):
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3, 13])")
    module = folder / "shapes.py"
    module.write_text(module.read_text().replace("raise ValueError", "breakpoint(); raise ValueError"))
    done = replay(folder, typed="c\nq\n")
    assert done.returncode == 130
    assert done.stdout.endswith("2 samples: 1 fails as before, 1 was interrupted\n")
