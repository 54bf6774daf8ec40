"""Short of descriptors or of processes: the right stream, or an error that names the limit. No hang, nothing left."""

from __future__ import annotations

import pytest

from tests.faults.scarcity import cgroup, run

STARTS = ["nursery", "fork", "spawn"]


@pytest.mark.parametrize("start", STARTS)
def test_sixty_four_descriptors_do_for_eight_workers_and_200_held_batches(start):
    code = f"""
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        with Loader(Big(200, mib=0.1), 1, workers=Processes(8, start={start!r})) as loader:
            print([number(batch) for batch in list(loader)] == list(range(200)))
    """
    assert run(code) == "True\n"


@pytest.mark.parametrize("start", STARTS)
def test_too_few_descriptors_for_the_workers_asked_for_is_an_error_that_names_the_limit(start):
    code = f"""
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        before = holdings()
        with Loader(Big(200), 1, workers=Processes(60, start={start!r})) as loader:
            try:
                next(iter(loader))
            except OSError as error:
                print(error)
        assert holdings() == before, (before, holdings())
    """
    assert "ulimit -n" in run(code)


@pytest.mark.parametrize("start", STARTS)
def test_wherever_descriptors_run_out_nothing_is_left_behind(start):
    """With one more at each attempt, until it works: every place that opens one gets to be the one that fails."""
    code = f"""
        def attempt():
            with Loader(Big(4, mib=0.1), 1, workers=Processes(2, start={start!r})) as loader:
                assert [number(batch) for batch in loader] == [0, 1, 2, 3]

        attempt()
        before, failures, soft = holdings(), [], resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        for spare in range(20):
            resource.setrlimit(resource.RLIMIT_NOFILE, (before[0] + spare, soft))
            try:
                attempt()
            except OSError as error:
                failures.append(spare)
                assert "ulimit -n" in str(error), (spare, error)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
            assert holdings() == before, (spare, before, holdings())
            if spare - len(failures) == 2:
                break  # it has worked three times
        assert failures == list(range(len(failures))) and len(failures) > 4, failures
    """
    run(code)


def test_a_nursery_with_a_lower_limit_than_the_consumer_serves_all_the_same():
    """A script that raises its own limit, as many do, when the nursery is already there. No worker dies of it."""
    code = """
        import logging

        class Where(Big):
            def __getitem__(self, index):
                return os.getpid()

        logging.basicConfig(stream=sys.stdout, format="%(message)s")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        with Loader(Big(4), 1, workers=1) as first, Loader(Where(400), 1, workers=70) as loader:
            next(iter(first))
            resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
            seen = set()
            while len(seen) < 70:
                seen.update(int(batch[0]) for batch in loader)
    """
    assert run(code) == ""


@pytest.mark.parametrize("start", STARTS)
def test_too_few_processes_allowed_is_an_error_that_says_so(start):
    """As in a container with a limit of them, and as with ulimit -u."""
    code = f"""
        before = holdings()
        with Loader(Big(200), 1, workers=Processes(40, start={start!r})) as loader:
            try:
                for _ in range(20):
                    list(loader)
            except (OSError, stoker.WorkerDied) as error:
                print(error)
        assert holdings() == before, (before, holdings())
    """
    with cgroup("pids", max=16) as within:
        assert "ulimit -u" in run(code, within=within)
