"""A paper that looks its numbers up: LaTeX, PDF and a web page."""
