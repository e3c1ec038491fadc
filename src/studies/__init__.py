"""Studies: published papers whose numbers are computed again, one package a paper."""
