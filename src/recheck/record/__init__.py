"""Files that say when they were damaged, and what a run was made with."""
