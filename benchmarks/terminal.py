"""The terminal: tables that grow while the bench runs, with a line of progress under them."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from benchmarks.comparisons import ComparisonResult
from benchmarks.drop_in import DROP_INS
from benchmarks.forms import FORMS
from benchmarks.report import Report, amount, comparison_cells, comparison_head, comparison_title, cost, mark
from benchmarks.results import Spread, WorkloadResult
from benchmarks.workloads import CONTENDERS, DROP_IN_CONTENDERS, FORM_CONTENDERS

_PAPER = 140


class Screen:
    """Shows a report. Redraws only between rounds, so that nothing is drawn while something is measured."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._running: WorkloadResult | None = None
        self._begin = monotonic()
        console = Console()
        if not console.is_terminal:
            console = Console(width=_PAPER)  # a file or a pipe has no width of its own
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="visible")

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.update(Group(*self._tables()), refresh=True)
        self._live.stop()

    def step(self, doing: str, running: WorkloadResult | None = None) -> None:
        self._running = running
        line = Spinner("dots", Text(f"{doing}  ({monotonic() - self._begin:.0f} s)", style="dim"))
        self._live.update(Group(*self._tables(), line), refresh=True)
        if not self._live.console.is_terminal:
            self._live.console.print(doing, highlight=False)

    def _tables(self) -> list[RenderableType]:
        results, forms, drop_ins = list(self._report.workloads), list(self._report.forms), list(self._report.drop_ins)
        if self._running is not None and self._running not in (*results, *forms, *drop_ins):
            name = self._running.workload.name
            (forms if name in FORMS else drop_ins if name in DROP_INS else results).append(self._running)
        tables: list[RenderableType] = []
        if results:
            tables += [_throughput(results, CONTENDERS), _costs(results, CONTENDERS)]
        if forms:
            tables.append(_throughput(forms, FORM_CONTENDERS))
        if drop_ins:
            tables += [_throughput(drop_ins, DROP_IN_CONTENDERS), _costs(drop_ins, DROP_IN_CONTENDERS)]
        results += forms + drop_ins
        if self._report.figures:
            tables.append(_figures(self._report))
        tables += map(_comparison, self._report.comparisons)
        results += [result.race for result in self._report.comparisons]
        errors = [(result.workload.name, *item) for result in results for item in result.errors.items()]
        tables += [Text(f"{work}, {name}: {error}", style="red") for work, name, error in errors]
        tables += [Text(f"{one.name}: {one.error}", style="red") for one in self._report.figures if one.error]
        return tables


def _throughput(results: list[WorkloadResult], names: Sequence[str]) -> Table:
    table = Table(title="Throughput, and Stoker's ratios beside what they are to be", title_justify="left")
    for head in ("workload", *names, *(f"/{to}" for to, _ in results[0].targets()), ""):
        table.add_column(head, style="bold" if head == names[0] else "")
    for result in results:
        cells = (amount(result.throughput(name)) for name in names)
        name = f"{result.workload.name}, {result.workload.unit}"
        table.add_row(
            name,
            *cells,
            *(_short(result.ratio(to), least) for to, least in result.targets()),
            _coloured(result.verdict()),
        )
    return table


def _costs(results: list[WorkloadResult], names: Sequence[str]) -> Table:
    table = Table("workload", *names, title="CPU-seconds and peak PSS of the process tree", title_justify="left")
    for result in results:
        per = "GB" if result.workload.unit == "GB/s" else "1000 batches"
        table.add_row(f"{result.workload.name}, per {per}", *(cost(result, name) for name in names))
    return table


def _figures(report: Report) -> Table:
    table = Table("figure", "measured", "target", "", title="Single figures", title_justify="left")
    for figure in report.figures:
        table.add_row(figure.title, figure.value, figure.target, _coloured(figure.met))
    return table


def _comparison(result: ComparisonResult) -> Table:
    table = Table(*comparison_head(result), title=comparison_title(result), title_justify="left")
    for row in result.comparison.rows:
        table.add_row(*comparison_cells(result, row)[:-1], _coloured(result.met(row)))
    return table


def _short(ratio: Spread | None, least: float | None) -> str:
    found = "–" if ratio is None else f"{ratio.median:.2f}×"
    return found if least is None else f"{found} of {least:g}"


def _coloured(met: bool | None) -> Text:
    return Text(mark(met), style={True: "green", False: "red", None: ""}[met])
