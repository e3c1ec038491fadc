"""The study of Neal (1997): three classes and a regression with outliers, on the author's own files."""
