"""Measures of the study, by part. Nothing else opens its rows."""
