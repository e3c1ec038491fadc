"""What a study shows: declared tables, figures, and the audit of all verdicts."""
