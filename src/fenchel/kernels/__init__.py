"""Small compiled pieces; each has a plain numpy twin in tests/twins."""
