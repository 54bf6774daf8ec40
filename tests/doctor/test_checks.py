"""Each check finds what it is there for, says why, and what mends it."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from stoker.doctor import CHECKS, Host, Level, examine
from tests.doctor.machines import SOUND, findings, host


def test_a_sound_machine_has_nothing_to_change(tmp_path):
    assert findings(tmp_path) == {}
    found = examine(host(tmp_path))
    assert {finding.level for finding in found} == {Level.FINE}
    assert len({finding.check for finding in found}) >= 9


def test_a_machine_of_which_nothing_is_known_is_no_error(tmp_path):
    empty = Host(root=tmp_path, environment={}, open_files=-1, own_cores=1, all_cores=1, start_method="spawn")
    assert all(finding.level == Level.FINE for finding in examine(empty))


def test_this_machine_can_be_examined():
    found = examine(Host())
    assert [finding.level for finding in found] == sorted((finding.level for finding in found), reverse=True)
    assert "versions" in {finding.check for finding in found}


QUOTAS = {
    "in a container": {"/proc/self/cgroup": "0::/", "/sys/fs/cgroup/cpu.max": "250000 100000"},
    "of a group around ours": {"/sys/fs/cgroup/user.slice/cpu.max": "250000 100000"},
    "version 1": {
        "/proc/self/cgroup": "4:cpu,cpuacct:/docker/ab\n3:memory:/docker/ab",
        "/sys/fs/cgroup/cpu/docker/ab/cpu.cfs_quota_us": "250000",
        "/sys/fs/cgroup/cpu/docker/ab/cpu.cfs_period_us": "100000",
    },
}


@pytest.mark.parametrize("files", QUOTAS.values(), ids=QUOTAS)
def test_a_cpu_quota_below_the_cores_is_found(files, tmp_path):
    found = findings(tmp_path, files)["CPU quota"]
    assert found.level == Level.WARNING
    assert "2.5 CPUs" in found.what
    assert "8 cores" in found.what
    assert "workers=2" in found.remedy


@pytest.mark.parametrize("limit", ["max 100000", "800000 100000", "", "nonsense", "-1 100000"])
def test_no_quota_below_the_cores_is_fine(limit, tmp_path):
    assert "CPU quota" not in findings(tmp_path, {"/sys/fs/cgroup/cpu.max": limit})


@pytest.mark.parametrize(
    ("environment", "workers", "is_bad"),
    [
        ({"OMP_NUM_THREADS": "4"}, 4, True),
        ({"OMP_NUM_THREADS": "2"}, 4, False),
        ({"MKL_NUM_THREADS": "8"}, 2, True),
        ({"OPENBLAS_NUM_THREADS": "2"}, None, True),
        ({"OMP_NUM_THREADS": "1"}, 64, False),
        ({"OMP_NUM_THREADS": "4,2"}, 64, False),
        ({}, 64, False),
    ],
)
def test_more_threads_in_workers_than_cores_are_found(environment, workers, is_bad, tmp_path):
    found = findings(tmp_path, environment=environment, workers=workers)
    assert ("BLAS and OpenMP threads" in found) == is_bad
    if is_bad:
        assert next(iter(environment)) in found["BLAS and OpenMP threads"].remedy


def test_threads_are_counted_against_the_quota(tmp_path):
    found = findings(tmp_path, QUOTAS["in a container"], environment={"OMP_NUM_THREADS": "2"}, workers=2)
    assert "on 2.5 cores" in found["BLAS and OpenMP threads"].what


def memory(**amounts: int) -> dict[str, str]:
    own = {"MemTotal": 64, "MemAvailable": 48, "SwapTotal": 8, "SwapFree": 8} | amounts
    return {"/proc/meminfo": "\n".join(f"{name}: {amount << 20} kB" for name, amount in own.items())}


FINDINGS = {
    "memory is full": (memory(MemAvailable=2), {}, "memory", Level.WARNING),
    "the container's memory is full": (
        {"/sys/fs/cgroup/memory.max": str(2**30), "/sys/fs/cgroup/memory.current": str(2**30 - 2**20)},
        {},
        "memory",
        Level.WARNING,
    ),
    "swapping": (memory(SwapFree=2), {}, "swap", Level.WARNING),
    "few mappings": ({"/proc/sys/vm/max_map_count": "8192"}, {}, "vm.max_map_count", Level.WARNING),
    "no huge pages": (
        {"/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"},
        {},
        "transparent huge pages",
        Level.NOTE,
    ),
    "few files": ({}, {"open_files": 256}, "open files (ulimit -n)", Level.WARNING),
    "a slow clock": (
        {"/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"},
        {},
        "clock source",
        Level.WARNING,
    ),
    "a disk that spins": (
        {
            "/proc/self/mountinfo": SOUND["/proc/self/mountinfo"] + "\n30 20 8:0 / /data rw - xfs /dev/sda rw",
            "/sys/dev/block/8:0/queue/rotational": "1",
        },
        {},
        "disk",
        Level.WARNING,
    ),
    "a remote disk": (
        {"/proc/self/mountinfo": "30 20 0:50 / /data/images rw - nfs4 server:/images rw"},
        {},
        "disk",
        Level.NOTE,
    ),
}


@pytest.mark.parametrize(("files", "given", "check", "level"), FINDINGS.values(), ids=FINDINGS)
def test_what_is_wrong_is_found_and_nothing_else(files, given, check, level, tmp_path):
    found = findings(tmp_path, files, **given)
    assert list(found) == [check]
    assert found[check].level == level
    assert found[check].why.endswith((".", "'."))
    assert found[check].remedy


def test_a_partition_spins_as_its_disk_does(tmp_path):
    files = {"/proc/self/mountinfo": "30 20 8:1 / / rw - ext4 /dev/sda1 rw", "/sys/block/sda/queue/rotational": "1"}
    (tmp_path / "sys/block/sda/sda1").mkdir(parents=True)
    (tmp_path / "sys/dev/block").mkdir(parents=True)
    os.symlink("../../block/sda/sda1", tmp_path / "sys/dev/block/8:1")
    assert "spins" in findings(tmp_path, files)["disk"].what


def test_a_virtual_disk_that_claims_to_spin_is_believed_nothing(tmp_path):
    files = {"/proc/self/mountinfo": "30 20 254:0 / / rw - ext4 /dev/vda rw"}
    assert "disk" not in findings(tmp_path, files | {"/sys/dev/block/254:0/queue/rotational": "1"})


def test_forking_is_noted(tmp_path):
    machine = Host(root=tmp_path, start_method="fork", environment={})
    (found,) = [finding for finding in examine(machine) if finding.check == "start of processes"]
    assert found.level == Level.NOTE


def test_an_old_library_is_found(tmp_path, monkeypatch):
    old = {"torch": "1.13.1+cu117", "numpy": "2.4.6"}
    monkeypatch.setattr(Host, "version", lambda self, package: old.get(package))
    found = findings(tmp_path)["versions"]
    assert found.what == "torch 1.13.1+cu117"
    assert 'pip install "torch>=2.1"' in found.remedy


def test_each_check_says_what_it_does():
    assert len(CHECKS) == len(set(CHECKS))


def test_a_small_shared_memory_folder_is_a_note_since_it_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "dev/shm").mkdir(parents=True)
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_blocks=16384, f_frsize=4096))
    found = findings(tmp_path)["/dev/shm"]
    assert found.level == Level.NOTE
    assert "0.062 GiB" in found.what
