"""Summaries in, text or bytes out: tables, charts and pages. Pure: no clock, no network, no files."""
