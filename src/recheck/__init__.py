"""Compare a re-run of published results with what was printed.

Four rooms: `recheck.judge` (cells, measures, readings, verdicts), `recheck.report` (tables, figures), `recheck.paper`
(look-ups, LaTeX, HTML) and `recheck.record` (files with digests, provenance). They know no particular study.
``README.md`` beside this file says what it is for, and ``STUDY.md`` explains a study of three rows.
"""

from recheck.judge.one import Design, Judgement, judge_one

__all__ = ["Design", "Judgement", "judge_one"]
