"""The certified reference of Experiment 4 and the truths of Experiments 1 to 3: how they are made, kept and checked."""
