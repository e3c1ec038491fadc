"""Tables as people have them: read, started, and judged beside ours in one command; nonsense is refused in one line."""

import io
import json
import os
import sys

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some

from recheck.judge.command import DIFFERS, NOTHING, SAME, WRONG, main
from recheck.judge.declared import read_yaml
from recheck.judge.one import judge_one
from recheck.judge.sheets import long, read_sheet
from recheck.judge.starting import read_study

MARKDOWN = """Results on two sets:

| Model | CIFAR-10 | CIFAR-100 |
|:---|---:|---:|
| ResNet-18 | 93.02 | **75.1** |
| VGG 16 | 92.64 | - |
"""
LATEX = r"""\begin{table}\begin{tabular}{@{}lcc@{}}
\toprule
& \multicolumn{2}{c}{Accuracy} \\ \cmidrule(lr){2-3}
Model & CIFAR-10 & CIFAR-100 \\ \midrule
ResNet-18 & 93.02 & \textbf{75.1} \\ % the best
VGG 16 & $92.64$ & -- \\[2pt]
\bottomrule
\end{tabular}\end{table}
"""
WIDE = [
    ("ResNet-18/CIFAR-10", "93.02"),
    ("ResNet-18/CIFAR-100", "75.1"),
    ("VGG-16/CIFAR-10", "92.64"),
]
#: How many nonsense tables are tried: more with a variable, as the library's fuzzing.
EXAMPLES = int(os.environ.get("RECHECK_EXAMPLES", "40"))


@pytest.fixture
def file(tmp_path):
    def write(text, name="table.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("text", "front"),
    [
        (MARKDOWN, ""),
        (LATEX, "Accuracy/"),
        ("Model,CIFAR-10,CIFAR-100\nResNet-18,93.02,75.1\nVGG 16,92.64,\n", ""),
        ("Model;CIFAR-10;CIFAR-100\nResNet-18;93.02;75.1\nVGG 16;92.64;n/a\n", ""),
        ("Model\tCIFAR-10\tCIFAR-100\nResNet-18\t93.02\t75.1\nVGG 16\t92.64\t-\n", ""),
        ("Model      CIFAR-10  CIFAR-100\nResNet-18  93.02     75.1\nVGG 16     92.64     -\n", ""),
        ("Model CIFAR-10 CIFAR-100\nResNet-18 93.02 75.1\nVGG 16 92.64 -\n", ""),
    ],
)
def test_one_table_in_many_forms(file, text, front):
    rows, absent = long(read_sheet(file(text)))
    wanted = [(one.replace("/", f"/{front}"), number) for one, number in WIDE]
    found = [
        (row["id"], row["printed"].replace(r"\textbf{75.1}", "75.1").strip("*$")) for row in rows
    ]
    assert found == wanted and absent == 1


def test_a_workbook_has_the_digits_of_its_format(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["Model", "error"])
    book.active.append(["a", 0.12])
    book.active["B2"].number_format = "0.000"
    book.save(tmp_path / "t.xlsx")
    assert long(read_sheet(tmp_path / "t.xlsx"))[0][0]["printed"] == "0.120"


def test_two_tables_are_judged_in_one_command(file, tmp_path, capsys):
    printed = file(MARKDOWN, "paper.md")
    ours = []
    for k in range(4):
        rows = f"ResNet-18,{95 + k / 10},{75 + k / 10}\nVGG 16,{92.6 + k / 10},60\n"
        ours.append(file(f"Model,CIFAR-10,CIFAR-100\n{rows}", f"{k}.csv"))
    out = ["--json", str(tmp_path / "v.json"), "--html", str(tmp_path / "v.html")]
    assert main(["judge", str(printed), *map(str, ours), "--margin", "1.01", *out]) == DIFFERS
    text = capsys.readouterr().out
    assert "3 verdicts: 2 agrees, 1 differs (1 of ours higher); margin: a factor of 1.01" in text
    assert "1 ids of ours are not printed, and are left out: VGG-16/CIFAR-100" in text
    page = (tmp_path / "v.html").read_text()
    assert page.count("<svg") == 3 and "http" not in page
    rows = json.loads((tmp_path / "v.json").read_text())
    main(["schema"])
    schema = json.loads(capsys.readouterr().out)
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(rows, schema)
    assert [row["direction"] for row in rows] == ["higher", "higher", "higher"]
    # an input is never overwritten
    assert main(["judge", str(printed), str(ours[0]), "--json", str(ours[0])]) == WRONG
    assert "ends in .json" in capsys.readouterr().err


def test_brackets_are_asked_for_and_deviations_judged(file, tmp_path, capsys):
    printed = file("Model,error\na,0.92 ± 0.01\nb,0.80 ± 0.50\n")
    lines = [
        f"{name}/error,{value}"
        for name in "ab"
        for value in (0.919, 0.925, 0.921, 0.923, 0.922, 0.92)
    ]
    ours = file("\n".join(["id,value", *lines]), "ours.csv")
    assert main(["judge", str(printed), str(ours)]) == WRONG
    assert "What is it? Type --brackets 'standard deviation'" in capsys.readouterr().err
    assert (
        main(
            [
                "init",
                str(printed),
                str(tmp_path / "s"),
                "--brackets",
                "standard deviation",
                "--units",
                "20",
            ]
        )
        == SAME
    )
    cells = read_study(tmp_path / "s").cells
    assert cells["error"].tolist() == pytest.approx([0.01 / 20**0.5, 0.5 / 20**0.5])
    capsys.readouterr()
    assert main(["judge", str(tmp_path / "s"), str(ours)]) == DIFFERS
    verdicts = {
        line.split()[0]: line for line in capsys.readouterr().out.splitlines() if "/error" in line
    }
    assert "differs" in verdicts["b/error/sd"] and "differs" not in verdicts["a/error"]


def test_a_difference_with_a_bracket_is_a_difference(file, capsys):
    """2020 beside 2866.7 is 847 lower, which is no agreement within 100."""
    printed = file(
        "id,printed,bracket,bracket_kind,units,scale\na,2866.7,70.8,standard error,10,linear\n",
        "p.csv",
    )
    ours = file("id,value,sd,n\na,2020,220,10\n", "o.csv")
    assert main(["judge", str(printed), str(ours), "--difference", "100"]) == DIFFERS
    text = capsys.readouterr().out
    assert "−847" in text and "lower" in text


@pytest.mark.parametrize(("value", "status"), [(0.0002, SAME), (0.02, DIFFERS)])
def test_a_bound_is_judged_by_its_side(file, capsys, value, status):
    ours = [f"a,{value * factor}" for factor in (0.9, 1.0, 1.1, 1.05, 0.95)]
    paths = file("id,printed\na,<.001\n", "p.csv"), file("\n".join(["id,value", *ours]), "o.csv")
    assert main(["judge", *map(str, paths)]) == status


def test_shares_of_items_are_counted(file, capsys):
    """20 of 20 beside a printed .95 of 20: Fisher's p is 1."""
    paths = (
        file("id,printed,units\na,.95,20\n", "p.csv"),
        file("\n".join(["id,value", *["a,1"] * 20]), "o.csv"),
    )
    assert main(["judge", *map(str, paths), "--notes"]) == SAME
    assert "20 of 20 items; published: 19 of 20" in capsys.readouterr().out


def test_runs_without_data_sets_are_units(file, capsys):
    paths = (
        file("id,printed,runs\na,0.90,5\n", "p.csv"),
        file("id,run,value\na,1,.91\na,2,.9\na,3,.89\n", "o.csv"),
    )
    assert main(["judge", *map(str, paths)]) == SAME
    text = capsys.readouterr().out
    assert "each run is a unit, on both sides" in text and "Nobody chose the margin" in text
    assert main(["init", str(paths[0]), str(paths[0].with_name("study"))]) == SAME
    capsys.readouterr()
    assert main(["judge", str(paths[0].with_name("study")), str(paths[1])]) == SAME
    assert "Nobody chose" not in capsys.readouterr().out  # it stands in the study's protocol


def test_standard_input_percents_and_points_of_comparison(file, monkeypatch, capsys):
    ours = file("id,value\na/x,0.85\na/x,0.86\na/x,0.845\n", "o.csv")

    def judged(text, *more):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return main(["judge", "-", str(ours), *more])

    assert judged("m,x\na,85 %\n") == WRONG  # a share is a difference: within what?
    assert "--difference" in capsys.readouterr().err
    assert judged("m,x\na,85 %\n", "--difference", "0.1") == SAME
    assert "Nobody chose" not in capsys.readouterr().out  # a factor has no part in it
    assert judged("m;x\na;0,85\n", "--comma") == SAME
    assert "0.8517 (0.0044)" in capsys.readouterr().out  # the comma is the paper's alone
    assert judged("m,x\na,85.2\n") == DIFFERS
    assert "is one in percent?" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("N,M,err\n50,100,0.245\n50,1000,0.072\n", "--labels 1 or --labels 2 if they name them"),
        ("A & 1.0 & 2.0 \\\\\nB & 1.1 & 2.2 \\\\\n", "or --headers 0 if no row has names"),
        ("m;x\na;1,234\nb;2,345\n", "line 3: '2,345' may be a thousand or have three decimals"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0",
            "a workbook of an old Excel: save it as .xlsx or as CSV",
        ),
        (b"PK\x03\x04 no archive", "save it as CSV"),
    ],
)
def test_what_a_table_does_not_say_is_asked_for(file, capsys, text, asks):
    """A size of a sample is no printed result, and a first row of numbers is no row of names."""
    paths = file(text, "p.csv"), file("id,value\na/x,1\na/x,2\n", "o.csv")
    assert main(["judge", *map(str, paths)]) == WRONG
    assert asks in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "options", "ids"),
    [
        ("N,M,err\n50,100,0.245\n50,1000,0.072\n", {"labels": 2}, ["50/100/err", "50/1000/err"]),
        ("A & 1.0 & 2.0 \\\\\n", {"headers": 0}, ["A/column2", "A/column3"]),
        ("Model,2019,2020\na,1.2,1.4\n", {}, ["a/2019", "a/2020"]),
        (",err\n0,0.245\n1,0.072\n", {}, ["0/err", "1/err"]),  # an index has no name
        ("Model,err\na,0.1\n".encode("utf-16"), {}, ["a/err"]),
    ],
)
def test_names_are_read_or_said(file, text, options, ids):
    assert [row["id"] for row in long(read_sheet(file(text)), **options)[0]] == ids


@pytest.mark.parametrize(
    ("printed", "value", "status"),
    [
        ("<.001", 0.0002, SAME),
        ("<.001", 0.001, DIFFERS),
        ("≤.001", 0.001, SAME),
        (">.05", 0.2, SAME),
    ],
)
def test_an_exact_number_beside_a_bound_has_the_verdict_that_it_has_alone(
    file, capsys, printed, value, status
):
    paths = file(f"id,printed\na,{printed}\n", "p.csv"), file(f"id,value\na,{value}\n", "o.csv")
    assert main(["judge", *map(str, paths), "--exact"]) == status
    alone = judge_one(printed, value, exact=True).verdict
    assert alone == ("agrees" if status == SAME else "differs")


def test_every_bad_cell_is_named_at_once(file, capsys):
    table = file("Model,x,note\na,1.0x,best\nb,2.0,good\n")
    ours = file("id,value\nb/x,2\n", "o.csv")
    assert main(["judge", str(table), str(ours)]) == WRONG
    text = capsys.readouterr().err
    assert (
        text.count("needed is a number") == 3 and "row 'a', column 'x'" in text and "--skip" in text
    )
    # a column of numbers with units is none of names
    assert main(["judge", str(file("Model,x,y\na,1.0ms,2\nb,1.1ms,3\n")), str(ours)]) == WRONG
    assert capsys.readouterr().err.count("column 'x': needed is a number") == 2
    rows, _ = long(read_sheet(file("Model,x,note\na,1.0,best\nb,2.0,good\n")), skip=["note"])
    assert [row["id"] for row in rows] == ["a/x", "b/x"]


# --- Hostile and broken input: a right answer, or one line with the file and status 2


@pytest.mark.parametrize(
    ("printed", "ours", "message"),
    [
        ("id,printed\na,1e400\n", None, "cell a: printed"),
        ("id,printed\n$(touch x),1\n", None, "needed are letters"),
        ("id,printed\n\\input{x},1\n", None, "needed are letters"),
        (b"id,printed\na,1\xff\n", None, "line 2: needed is text in UTF-8"),
        (b"id,printed\na,1\0\n", None, "line 2: needed is text"),
        ("id,printed,id\na,1,b\n", None, "columns ['id'] are there twice"),
        ("id,printed\na,1,2,3\n", None, "line 2: 4 fields"),
        ('id,printed\n"a,1\n', None, "a quote that opens is never closed"),
        (
            "id,printed\na,1\n",
            "id,value\na,1e308\n",
            "line 2: value: needed is a number of at most",
        ),
        ("id,printed\na,1\n", "id,value,n,sd\na,1,1e9,1\n", "n: needed are 2 to 9999"),
        (
            "id,printed,units\na,1,99999999999999999999\n",
            None,
            "units: needed is a positive integer",
        ),
        (
            "id,printed,bracket,bracket_kind,units\na,1,0.1,sd,5\n",
            None,
            "bracket_kind: needed is one of",
        ),
    ],
)
def test_broken_tables_are_refused_in_a_line(file, capsys, printed, ours, message):
    paths = file(printed, "p.csv"), file(ours or "id,value\na,1\na,2\n", "o.csv")
    assert main(["judge", *map(str, paths)]) == WRONG
    assert message in capsys.readouterr().err


def test_a_bracket_that_prints_as_zero_is_less_than_half_a_unit(file, capsys):
    printed = file("id,printed,bracket,bracket_kind,units\na,0.92,0.00,standard error,5\n", "p.csv")
    assert (
        main(["judge", str(printed), str(file("id,value\na,.91\na,.92\na,.93\n", "o.csv"))]) == SAME
    )


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agree: 2\nagree: 1000\n", "line 2: not YAML: 'agree' is given twice"),
        ("a: 1:30\n", "base of 60"),
        ("a: \t1\n  b\t:", "not YAML"),
        (BOMB, "at most 200000 values"),
        ("&a [*a]\n", "it holds itself"),
        ("[" * 60 + "]" * 60, "levels"),
        ("a: 1\n---\nb: 2\n", "not YAML"),
        (b"a: \xff\n", "UTF-8"),
        ("[1]\n", "needed is a dict"),
    ],
)  # fmt: skip
def test_yaml_is_strict(file, text, message):
    with pytest.raises(ValueError, match="table.txt") as error:
        read_yaml(file(text), dict)
    assert message in str(error.value) and len(str(error.value)) < 400


def test_an_infinite_margin_is_refused(file, tmp_path, capsys):
    paths = file("id,printed\na,1\n", "p.csv"), file("id,value\na,1\na,2\n", "o.csv")
    for margin in ("inf", "nan", "1"):
        assert main(["judge", *map(str, paths), "--margin", margin]) == WRONG
    assert main(["init", str(paths[0]), str(tmp_path / "s"), "--difference", "inf"]) == WRONG
    (tmp_path / "s").mkdir()
    head = "id,table,column,printed,bracket,bracket_kind,scale,units,runs,section"
    (tmp_path / "s" / "cells.csv").write_text(f"{head}\na,,a,1,,,log,1,1,\n")
    claim = "- {id: c, section: 1, statement: s, between: [-.inf, .inf]}"
    (tmp_path / "s" / "claims.yaml").write_text(claim)
    assert main(["judge", str(tmp_path / "s"), str(paths[1])]) == WRONG
    assert "finite" in capsys.readouterr().err


_CELLS = some.one_of(
    some.sampled_from(
        [
            "",
            "-",
            "1",
            "0.5",
            "1e400",
            "±",
            "0.9 ± 0.1",
            "<.01",
            "9" * 60,
            "id",
            "printed",
            "value",
            "\x85",
        ]
    ),
    some.text(max_size=6),
    some.floats().map(str),
)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    some.lists(some.lists(_CELLS, max_size=4), max_size=5),
    some.sampled_from([",", ";", "\t", " & ", " | "]),
    some.binary(max_size=12),
)
@example([["id", "printed"], ["a", "1"]], ",", b"")
@example([], ",", b'"')
def test_nonsense_ends_with_an_answer_or_one_line(tmp_path, rows, mark, tail):
    end = r" \\" if "&" in mark else ""
    text = (
        "".join(f"{mark.join(row)}{end}\n" for row in rows).encode("utf-8", "surrogatepass") + tail
    )
    path, ours = tmp_path / "p.csv", tmp_path / "o.csv"
    path.write_bytes(text)
    ours.write_text("id,value\na,1\na,1.1\na,0.9\n")
    for given_ in ([path, ours], [ours, path]):
        stream, old = io.StringIO(), sys.stderr
        sys.stderr = stream
        try:
            status = main(["judge", *map(str, given_)])
        finally:
            sys.stderr = old
        assert status in (SAME, DIFFERS, NOTHING, WRONG)
        assert "unexpected" not in stream.getvalue(), stream.getvalue()


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(some.text(alphabet="ab:-[]{}&*!|>'\"#\n \t%@,?0.1", max_size=60))
def test_nonsense_of_yaml_is_read_or_refused(tmp_path, text):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    try:
        read_yaml(path, dict)
    except ValueError as error:
        if "x.yaml" not in str(error):
            raise
