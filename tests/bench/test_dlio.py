"""How DLIO is run and what is made of its output, with a program in its place that writes what DLIO would."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest
from benchmarks.neutral.dlio import DROP_IN, LOADER, TORCH, WORKLOADS, Dlio, Result, RunError, Settings, measure
from benchmarks.neutral.dlio_summary import Summary, SummaryError, parse_summary
from benchmarks.neutral.report import Report, warm_rate

WORKLOAD = WORKLOADS["scaled"]
MACHINE = {"cpu": "a CPU", "cores": 2, "python": "3.11", "versions": {"stoker": "0.1"}}

# Notes its arguments, and writes a summary if it is to train: 100 samples/s in the first epoch and 200 in the second.
PRETENDED = """
    import json, pathlib, sys
    given = dict(argument.removeprefix("++workload.").split("=", 1) for argument in sys.argv[1:])
    with open("calls.jsonl", "a") as calls:
        calls.write(json.dumps(given) + "\\n")
    loader = given.get("reader.data_loader_classname", "torch")
    print("custom data loader class", loader.rpartition(".")[2])
    if loader.endswith("{breaks}"):
        sys.exit("it broke")
    if given.get("workflow.train") != "False":
        metric = {{"train_throughput_samples_per_second": [100.0, 200.0], "train_au_percentage": [40.0, 60.0]}}
        summary = json.dumps({{"metric": metric}})
        pathlib.Path(given["output.folder"], "summary.json").write_text(summary)
"""


def pretended(folder: Path, breaks: str = "nobody", source: str = PRETENDED) -> Dlio:
    program = folder / "dlio.py"
    program.write_text(textwrap.dedent(source).format(breaks=breaks))
    return Dlio(folder, (sys.executable, str(program)))


def calls(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]


def summary_text(**metric: object) -> str:
    whole = {"train_throughput_samples_per_second": [100.0, 200.0, 300.0], "train_au_percentage": [30, 60.0, 90.0]}
    return json.dumps({"metric": whole | metric})


def test_a_summary_has_dlios_means_and_those_without_the_first_epoch():
    summary = parse_summary(summary_text())
    assert (summary.mean_rate, summary.mean_utilisation, summary.warm_rate) == (200.0, 60.0, 250.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "did not finish"),
        ("{", "did not finish"),
        ("[]", "did not finish"),
        ('{"metric": {}}', "train_throughput_samples_per_second"),
        ('{"metric": []}', "train_throughput_samples_per_second"),
        (summary_text(train_au_percentage=None), "train_au_percentage"),
        (summary_text(train_au_percentage=["90", "90", "90"]), "train_au_percentage"),
        (summary_text(train_au_percentage=[90.0]), "throughput of 3 epochs and utilisation of 1"),
        (summary_text(train_au_percentage=[90.0], train_throughput_samples_per_second=[1.0]), "at least two epochs"),
    ],
)
def test_a_summary_that_lacks_something_says_what(text, says):
    with pytest.raises(SummaryError, match=says):
        parse_summary(text)


def test_loaders_take_turns_and_each_round_begins_with_another(tmp_path):
    steps: list[str] = []
    measure(pretended(tmp_path), [WORKLOAD], Settings(2, 5), steps.append)
    assert [step.rpartition(", ")[2] for step in steps[1:]] == [DROP_IN, LOADER, TORCH, LOADER, TORCH, DROP_IN]


def test_files_are_generated_once_and_all_loaders_are_given_the_same_settings(tmp_path):
    measure(pretended(tmp_path), [WORKLOAD], Settings(1, 5), lambda _: None)
    generating, *training = calls(tmp_path)
    assert generating["workflow.generate_data"] == "True"
    own = {"reader.data_loader_classname", "reader.data_loader_sampler", "output.folder"}
    first, *rest = ({key: value for key, value in call.items() if key not in own} for call in training)
    assert rest == [first, first]
    assert first["dataset.data_folder"] == generating["dataset.data_folder"]
    assert (first["train.epochs"], first["reader.batch_size"]) == ("5", "7")


def test_a_loader_that_fails_is_named_with_its_last_line_and_the_others_go_on(tmp_path):
    [result] = measure(pretended(tmp_path, breaks="WithLoader"), [WORKLOAD], Settings(2, 5), lambda _: None)
    assert result.errors == {LOADER: "DLIO ended with code 1: it broke"}
    assert {name: len(rounds) for name, rounds in result.rounds.items()} == {DROP_IN: 2, LOADER: 0, TORCH: 2}
    assert len(calls(tmp_path)) == 1 + 2 * 2 + 1  # the failed one was not run again


def test_files_that_could_not_be_generated_are_an_error(tmp_path):
    with pytest.raises(RunError, match="it wrote nothing"):
        measure(pretended(tmp_path, source="raise SystemExit(3)"), [WORKLOAD], Settings(1, 5), lambda _: None)


def test_the_summary_of_the_round_before_is_not_taken_for_this_one(tmp_path):
    pretended(tmp_path).train(TORCH, WORKLOAD, 2)
    with pytest.raises(SummaryError, match="did not finish"):
        pretended(tmp_path, source="").train(TORCH, WORKLOAD, 2)


def test_a_run_in_which_dlio_ignored_the_loader_is_an_error(tmp_path):
    ignoring = PRETENDED.replace("custom data loader class", "torch, not")
    with pytest.raises(RunError, match="may have used its own loader"):
        pretended(tmp_path, source=ignoring).train(DROP_IN, WORKLOAD, 2)


def test_ratios_are_medians_of_the_rounds_ratios():
    result = Result(WORKLOAD)
    result.rounds[DROP_IN] = [Summary((1.0, rate), (50.0, 50.0)) for rate in (200.0, 90.0, 400.0)]
    result.rounds[TORCH] = [Summary((1.0, rate), (50.0, 50.0)) for rate in (100.0, 30.0, 100.0)]
    ratio = result.ratio(DROP_IN, warm_rate)
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high) == (3.0, 2.0, 4.0)


def test_a_report_names_loaders_figures_and_failures(tmp_path):
    report = Report(
        MACHINE, {}, measure(pretended(tmp_path, breaks="WithLoader"), [WORKLOAD], Settings(1, 5), lambda _: None)
    )
    text = report.markdown()
    assert "| stoker.torch | 150 | 200 | 50 % | 1.00× (1.00–1.00) |" in text
    assert "| DLIO's own: torch | 150 | 200 | 50 % |  |" in text
    assert "- scaled, stoker.Loader: DLIO ended with code 1: it broke" in text


def test_a_report_is_written_with_every_round(tmp_path):
    results = measure(pretended(tmp_path), [WORKLOAD], Settings(2, 5), lambda _: None)
    Report(MACHINE, {"rounds": 2}, results).write(tmp_path / "results", "neutral")
    plain = json.loads((tmp_path / "results" / "neutral.json").read_text())
    assert plain["settings"] == {"rounds": 2}
    assert [one["samples_per_s"] for one in plain["dlio"][0]["rounds"][TORCH]] == [[100.0, 200.0]] * 2
    assert (tmp_path / "results" / "neutral.md").read_text().startswith("a CPU, 2 cores")
