"""What studies share: data sets, random streams, finished pieces, digests of code."""
