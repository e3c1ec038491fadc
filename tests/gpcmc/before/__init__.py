"""What the library found before its parts became one engine: problems, values and how they are compared."""
