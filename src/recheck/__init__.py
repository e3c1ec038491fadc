"""Compare a re-run of published results with what was printed: cells, measures, readings, verdicts.

The engine knows no particular study. Beside this file, ``README.md`` says what it is for, and ``STUDY.md`` explains a
study of three rows.
"""
