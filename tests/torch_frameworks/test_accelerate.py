"""Accelerate with Stoker's workers: prepared, skipped, accumulated, gathered, saved and loaded."""

from __future__ import annotations

import os

import pytest

accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

from accelerate import Accelerator, skip_first_batches  # noqa: E402
from accelerate.state import AcceleratorState, GradientState  # noqa: E402
from accelerate.utils import DataLoaderConfiguration  # noqa: E402
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter  # noqa: E402

from stoker.torch import DataLoader, adopt  # noqa: E402
from stoker.torch.in_process import InProcess  # noqa: E402
from stoker.torch.in_workers import InWorkers  # noqa: E402
from tests.torch_frameworks.samples import Drawn, Echo, Numbers, Stream, numbers  # noqa: E402


@pytest.fixture(autouse=True)
def no_state_is_left():
    """Accelerate keeps one state for each process."""
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


def accelerator(**options):
    stateful = options.pop("stateful", False)
    seedable = options.pop("seedable", False)
    config = DataLoaderConfiguration(use_stateful_dataloader=stateful, use_seedable_sampler=seedable)
    return Accelerator(cpu=True, dataloader_config=config, **options)


def loader(length=20, **options):
    return DataLoader(Numbers(length), **{"batch_size": 4, "num_workers": 2, **options})


def test_without_adopt_accelerate_iterates_a_loader_of_torchs(iterated):
    prepared = accelerator().prepare(loader())
    for _ in prepared:
        pass
    assert iterated == [_MultiProcessingDataLoaderIter]


def test_an_adopted_loader_iterates_ours(iterated):
    prepared = accelerator().prepare(loader())
    adopted = adopt(prepared)
    pids = [pid for batch in adopted for pid in batch["pid"].tolist()]
    assert adopted is prepared
    assert iterated == [InWorkers]
    assert os.getpid() not in pids
    assert len(set(pids)) == 2


def test_an_adopted_loader_is_an_instance_of_ours():
    assert isinstance(adopt(accelerator().prepare(loader())), DataLoader)


def test_prepared_a_second_time_it_stays_ours(iterated):
    accelerate = accelerator()
    adopted = adopt(accelerate.prepare(loader()))
    assert accelerate.prepare(adopted) is adopted
    list(adopted)
    assert iterated == [InWorkers]


def test_adopted_twice_it_is_the_same():
    adopted = adopt(accelerator().prepare(loader()), seed=3)
    inner = adopted.base_dataloader
    assert adopt(adopted).base_dataloader is inner
    assert adopt(adopted, seed=3).base_dataloader is inner
    assert adopt(adopted, seed=4).base_dataloader.seed == 4


@pytest.mark.parametrize("seedable", [False, True])
@pytest.mark.parametrize("num_workers", [0, 2])
def test_batches_and_their_order_are_those_of_torchs_loader(seedable, num_workers, iterated):
    def epochs(adopting):
        AcceleratorState._reset_state(reset_partial_state=True)
        torch.manual_seed(5)
        prepared = accelerator(seedable=seedable).prepare(
            DataLoader(Drawn(22), 4, shuffle=True, num_workers=num_workers, drop_last=True)
        )
        prepared = adopting(prepared)
        return [[(numbers(batch), batch["drawn"].tolist()) for batch in prepared] for _ in range(3)]

    expected = epochs(lambda prepared: prepared)
    iterated.clear()
    assert epochs(adopt) == expected
    assert iterated == [InWorkers if num_workers else InProcess] * 3
    assert [len(epoch) for epoch in expected] == [5, 5, 5]
    assert expected[0] != expected[1]


def test_arguments_of_the_loader_reach_the_workers():
    def collate(samples):
        return [sample["x"].item() + torch.initial_seed() * 0 + offset[0] for sample in samples]

    offset = [0]

    def init(worker):
        offset[0] = 100

    given = loader(8, collate_fn=collate, worker_init_fn=init, timeout=60, prefetch_factor=3, persistent_workers=True)
    adopted = adopt(accelerator().prepare(given))
    inner = adopted.base_dataloader
    assert [number for batch in adopted for number in batch] == list(range(100, 108))
    assert (inner.timeout, inner.prefetch_factor, inner.persistent_workers) == (60, 3, True)
    assert list(map(len, adopted)) == [4, 4]
    inner._iterator = None


def test_persistent_workers_are_the_same_in_the_next_epoch(iterated):
    adopted = adopt(accelerator().prepare(loader(persistent_workers=True)))
    first, second = ({pid for batch in adopted for pid in batch["pid"].tolist()} for _ in range(2))
    assert first == second
    assert iterated == [InWorkers]


def test_a_stream_is_adopted(iterated):
    """Accelerate takes its batches in one process and gives each process its part."""
    adopted = adopt(accelerator().prepare(DataLoader(Stream(10), 2, num_workers=2)))
    assert [numbers(batch) for batch in adopted] == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
    assert iterated == [InWorkers]


def test_skipped_batches_are_not_made_and_the_rest_is_ours(iterated):
    prepared = adopt(accelerator().prepare(loader()))
    rest = adopt(skip_first_batches(prepared, 3))
    assert [numbers(batch) for batch in rest] == [[12, 13, 14, 15], [16, 17, 18, 19]]
    assert iterated == [InWorkers]
    assert [numbers(batch)[0] for batch in prepared] == [0, 4, 8, 12, 16]


def test_skipped_batches_of_a_shuffled_epoch_are_those_of_torchs_loader():
    def run(adopting):
        AcceleratorState._reset_state(reset_partial_state=True)
        torch.manual_seed(1)
        prepared = adopting(accelerator(seedable=True).prepare(loader(shuffle=True)))
        prepared.set_epoch(2)
        return [numbers(batch) for batch in adopting(skip_first_batches(prepared, 2))]

    assert run(adopt) == run(lambda prepared: prepared)


def test_what_skip_first_batches_makes_of_an_unprepared_loader_is_adopted(iterated):
    accelerator()
    rest = adopt(skip_first_batches(loader(), 4))
    assert type(rest) is DataLoader
    assert [numbers(batch) for batch in rest] == [[16, 17, 18, 19]]
    streamed = adopt(skip_first_batches(DataLoader(Stream(10), 2, num_workers=2), 5))
    assert [numbers(batch) for batch in streamed] == [[9]]
    assert iterated == [InWorkers] * 2


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_gradients_are_accumulated_up_to_the_end_of_the_epoch(steps):
    accelerate = accelerator(gradient_accumulation_steps=steps)
    model = torch.nn.Linear(1, 1)
    model, optimizer, prepared = accelerate.prepare(model, torch.optim.SGD(model.parameters(), lr=1e-4), loader())
    synced = []
    for batch in adopt(prepared):
        with accelerate.accumulate(model):
            accelerate.backward(model(batch["x"]).sum())
            optimizer.step()
            optimizer.zero_grad()
            synced.append(accelerate.sync_gradients)
    assert synced == [(k + 1) % steps == 0 or k == 4 for k in range(5)]


def test_gather_for_metrics_gives_each_sample_once():
    accelerate = accelerator()
    adopted = adopt(accelerate.prepare(loader(18)))
    gathered = [accelerate.gather_for_metrics(batch["x"]) for batch in adopted]
    assert torch.cat(gathered).flatten().tolist() == list(range(18))
    assert adopted.total_batch_size == 4
    assert adopted.total_dataset_length == 18
    assert adopted.remainder == 2


def trained(adopted, stop=None):
    seen = []
    for batch in adopted:
        seen.append(numbers(batch))
        if len(seen) == stop:
            break
    return seen


@pytest.mark.parametrize("num_workers", [pytest.param(0, marks=pytest.mark.exhaustive), 2])
@pytest.mark.parametrize("seedable", [False, True])
@pytest.mark.parametrize("stateful", [False, True], ids=["registered", "stateful"])
@pytest.mark.parametrize("stop", [pytest.param(1, marks=pytest.mark.exhaustive), 3, 5])
def test_a_saved_state_goes_on_where_it_was(tmp_path, stop, stateful, seedable, num_workers, iterated):
    """Registered by the user, or by Accelerate's own switch, which needs torchdata."""
    if stateful:
        pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")

    def begun():
        AcceleratorState._reset_state(reset_partial_state=True)
        torch.manual_seed(7)
        accelerate = accelerator(stateful=stateful, seedable=seedable)
        adopted = adopt(accelerate.prepare(loader(shuffle=True, num_workers=num_workers)))
        if not stateful:
            accelerate.register_for_checkpointing(adopted)
        iterated.clear()
        return accelerate, adopted

    accelerate, adopted = begun()
    trained(adopted)
    seen = []
    for batch in adopted:
        seen.append(numbers(batch))
        if len(seen) == stop:
            accelerate.save_state(tmp_path)
    following = trained(adopted)

    accelerate, adopted = begun()
    accelerate.load_state(tmp_path)
    adopted.set_epoch(1 if stop < 5 else 2)
    assert trained(adopted) == (seen[stop:] if stop < 5 else following)
    assert iterated == [InWorkers if num_workers else InProcess]


def test_a_state_that_torchdatas_loader_has_saved_is_loaded(tmp_path):
    pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")
    accelerate = accelerator(stateful=True)
    prepared = accelerate.prepare(loader())
    iterator = iter(prepared)
    first = [numbers(next(iterator)) for _ in range(2)]
    accelerate.save_state(tmp_path)
    rest = [numbers(batch) for batch in iterator]
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerate = accelerator(stateful=True)
    adopted = adopt(accelerate.prepare(loader()))
    accelerate.load_state(tmp_path)
    assert trained(adopted) == rest
    assert len(first + rest) == 5


def test_options_that_accelerate_drops_are_given_to_adopt():
    def drawn(num_workers):
        AcceleratorState._reset_state(reset_partial_state=True)
        prepared = accelerator().prepare(DataLoader(Drawn(12), 4, num_workers=num_workers, seed=1))
        return [batch["drawn"].tolist() for batch in adopt(prepared, seed=1)]

    assert drawn(1) == drawn(2)


def test_an_unknown_option_and_another_object_are_errors():
    prepared = accelerator().prepare(loader())
    with pytest.raises(TypeError, match="speed"):
        adopt(prepared, speed=2)
    with pytest.raises(TypeError, match=r"builtins.list cannot be adopted.*accelerator.prepare"):
        adopt([1, 2])


def test_a_loader_of_torchs_becomes_one_of_ours_with_all_its_arguments(iterated):
    given = torch.utils.data.DataLoader(
        Numbers(10), 4, sampler=range(9, -1, -1), num_workers=2, drop_last=True, in_order=False
    )
    adopted = adopt(given, recover=False)
    assert type(adopted) is DataLoader
    assert (adopted.batch_size, adopted.drop_last, adopted.in_order, adopted.recover) == (4, True, False, False)
    assert sorted(numbers(batch) for batch in adopted) == [[5, 4, 3, 2], [9, 8, 7, 6]]
    assert iterated == [InWorkers]


@pytest.mark.parametrize("sampler", [[3, 1, 2], torch.utils.data.BatchSampler(range(7), 3, False)])
def test_a_loader_that_does_not_batch_is_adopted(sampler, iterated):
    given = torch.utils.data.DataLoader(Echo(), None, sampler=sampler, num_workers=2)
    assert list(adopt(given)) == list(sampler)
    assert iterated == [InWorkers]


def test_workers_end_with_a_loop_that_is_left(iterated):
    for _ in adopt(accelerator().prepare(loader(400))):
        break
    assert iterated == [InWorkers]
