"""Typesetting: reproducible, leaves nothing behind, and says what is wrong."""

import shutil

import pytest

from recheck.paper.typeset import too_wide, typeset

MAIN = r"""\documentclass{article}\pdftrailerid{}\pdfsuppressptexinfo=-1
\usepackage{xr}\externaldocument{other}
\begin{document}\input{tables/t}\label{here} On page \pageref{there}.\end{document}"""


def test_log_lines_that_stick_out():
    log = (
        "Overfull \\hbox (1.5pt too wide) in\nx\nOverfull \\hbox (12.0pt too wide) at lines 3--4\n"
    )
    assert too_wide(log) == ["Overfull \\hbox (12.0pt too wide) at lines 3--4"]


@pytest.mark.skipif(not shutil.which("latexmk"), reason="there is no LaTeX here")
def test_two_documents_that_refer_to_each_other(tmp_path):
    (tmp_path / "main.tex").write_text(MAIN)
    (tmp_path / "other.tex").write_text(
        MAIN.replace("{other}", "{main}").replace("{here}", "{there}")
    )
    (tmp_path / "t.tex").write_text(r"\hbox to \textwidth{\rule{\textwidth}{1pt} far too wide}")
    outputs = [tmp_path / "out" / name for name in ("1.pdf", "2.pdf", "3.pdf", "4.pdf")]
    for first, second in (outputs[:2], outputs[2:]):
        wide = typeset(
            [tmp_path / "main.tex", tmp_path / "other.tex"],
            {"tables": [tmp_path / "t.tex"]},
            {"main.tex": first, "other.tex": second},
            log=tmp_path / "log",
        )
    assert outputs[0].read_bytes() == outputs[2].read_bytes()
    assert outputs[1].read_bytes() == outputs[3].read_bytes()
    assert len(wide) == 2 and wide[0].startswith("main.tex: Overfull")
    assert (tmp_path / "log").stat().st_size
    (tmp_path / "main.tex").write_text(MAIN.replace(r"\label", r"\lable"))
    with pytest.raises(RuntimeError, match=r"main\.tex: latexmk failed:(.|\n)*Undefined control"):
        typeset([tmp_path / "main.tex"], {"tables": [tmp_path / "t.tex"]}, {"main.tex": outputs[0]})
