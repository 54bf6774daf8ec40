"""CSV in parts: the same records and the same types as if the file were read as a whole."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stoker.errors import ChunkError
from stoker.sources.files.delimited import Scan, Span, parse_csv, read_delimited, scanned
from stoker.sources.files.open_files import OpenFiles
from stoker.sources.files.parts import Cut, Part
from stoker.sources.files.readers import read_part
from stoker.sources.files.selection import Dtype, Selection
from stoker.surveys.delimited_survey import DelimitedSurvey
from stoker.surveys.worker_map import Crew
from stoker.workers import Inline

VALUES = {
    "whole": ["1", "22", "-3", "007"],
    "bit": ["0", "1"],
    "truth": ["true", "False", "0", "1"],
    "missing": ["", "NA", "nan", "NULL"],
    "real": ["1.5", "2", "1e9", "-inf"],
    "large": ["9223372036854775808", "1"],
    "day": ["2020-01-01", "1500-12-31"],
    "clock": ["12:34:56", "01:02:03"],
    "second": ["2020-01-01 00:00:00", "1500-01-01T01:02:03", "2020-01-01"],
    "nanosecond": ["2020-01-01 00:00:00.123456789", "2020-01-01", "2020-01-01 00:00:00.5"],
    "zoned": ["2020-01-01T00:00:00Z", "1500-01-01T00:00:00+0100", "2020-01-01T00:00:00.123Z"],
    "text": ["a", '"b,c"', '"d\ne"', '"say ""hi"""', '""', "é", '"\r\n"', '""""', '","'],
}
kinds = st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=2)
columns = st.lists(kinds.map(lambda some: [value for kind in some for value in VALUES[kind]]), min_size=1, max_size=4)


def survey(path: Path, step: int, selection: Selection | None = None) -> Cut | str:
    size = path.stat().st_size
    found = DelimitedSurvey(step, selection or Selection(), Crew(Inline()))
    return found.cuts("", {0: (str(path), size)})[0]


def parts_of(path: Path, cut: Cut) -> list[Part]:
    bounds = zip(cut.begins.tolist(), cut.ends.tolist(), strict=True)
    size = path.stat().st_size
    return [Part(0, str(path), begin, end, size, 0, cut.header, cut.schema) for begin, end in bounds]


def as_texts(table: pa.Table) -> list[str]:
    return [str(column.combine_chunks()) for column in table.columns]


@given(
    st.data(),
    columns,
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff", "\n"]),
    st.sampled_from([3, 20, 90]),
)
@settings(max_examples=150)
def test_parts_have_the_records_and_the_types_of_the_whole(data, columns, end, before, step):
    """Contract: where a file is cut changes no type and no value."""
    rows = data.draw(st.lists(st.tuples(*map(st.sampled_from, columns)), min_size=1, max_size=25))
    assume(len(columns) > 1 or all(row[0] for row in rows))  # an empty line is no record
    header = ",".join(f"c{n}" for n in range(len(columns)))
    last = data.draw(st.sampled_from(["", end, end * 2]))
    text = before + end.join([header, *map(",".join, rows)]) + last
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_bytes(text.encode())
        whole = parse_csv(path.read_bytes(), str(path), Selection())
        cut = survey(path, step)
        assume(cut != "its first record is longer than a part")
        assert isinstance(cut, Cut), cut
        tables = [read_delimited(part, Selection()) for part in parts_of(path, cut)]
        found = pa.concat_tables(tables)
        assert found.schema.equals(whole.schema)
        assert as_texts(found) == as_texts(whole)
        assert [table.num_rows for table in tables] == cut.rows.tolist()


@given(st.text('a",\n\r', max_size=40), st.integers(1, 12))
@settings(max_examples=300)
def test_whatever_is_cut_has_the_records_of_the_whole(text, step):
    """Also where quotes stand anywhere: it is cut as pyarrow reads it, or not at all."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_bytes(b"x,y\n" + text.encode())
        cut = survey(path, step)
        if isinstance(cut, str):
            return
        try:
            whole = parse_csv(path.read_bytes(), str(path), Selection())
        except pa.ArrowInvalid:
            with pytest.raises(pa.ArrowInvalid):
                pa.concat_tables([read_delimited(part, Selection()) for part in parts_of(path, cut)])
            return
        found = pa.concat_tables([read_delimited(part, Selection()) for part in parts_of(path, cut)])
        assert as_texts(found) == as_texts(whole)


def test_both_assumptions_are_looked_at(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('n,t\n1,"a\nb"\n2,c\n')
    size = path.stat().st_size
    assert scanned(Span(str(path), 0, size, size)) == Scan(2, (True, False), (0, 9), 4)
    assert scanned(Span(str(path), 8, size, size)) == Scan(1, (False, True), (9, 12), -1)


@pytest.mark.parametrize("text", ['1,a "quoted" word\n', '1,"a" b\n', '1,"never closed\n'])
def test_quotes_that_may_mean_something_else(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text("n,t\n" + "2,b\n" * 50 + text + "3,c\n" * 50)
    assert isinstance(survey(path, 40), str)


def test_what_is_known_is_not_found_out(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("n\tt\n" + "".join(f"{n}\t00{n}\n" for n in range(50)))
    selection = Selection(("t",), {"t": Dtype.of("t", str)})
    cut = survey(path, 40, selection)
    assert isinstance(cut, Cut)
    assert not cut.schema
    assert cut.rows.tolist() == [-1] * len(cut.begins)
    tables = [read_delimited(part, selection) for part in parts_of(path, cut)]
    assert pa.concat_tables(tables).to_pydict() == {"t": [f"00{n}" for n in range(50)]}


def test_a_record_that_is_wrong_is_an_error_of_its_part(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("n,t\n" + "2,b\n" * 50 + "1,2,3\n" + "3,c\n" * 50)
    cut = survey(path, 40)
    assert isinstance(cut, Cut)
    wrong = [at for at, rows in enumerate(cut.rows.tolist()) if rows < 0]
    assert len(wrong) == 1
    with pytest.raises(ChunkError, match=r"a\.csv at bytes \d+ to \d+.*Expected 2 columns, got 3"):
        read_part(parts_of(path, cut)[wrong[0]], files=OpenFiles(1))
