"""Compare a re-run of published results with what was printed: cells, measures, readings, verdicts.

The engine knows no particular study. ``README.md`` beside this file explains it with a study of three rows.
"""
