"""The experiments of the study: each module has a plan, and what runs a row of it."""
