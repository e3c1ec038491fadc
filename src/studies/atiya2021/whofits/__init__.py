"""Whether the error of an evidence matters to who fits: data sets, fits, the judge, and scores of predictions."""
