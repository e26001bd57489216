"""Reads what people write (scenarios, launcher files, tokenizers) and hands over plain data."""
