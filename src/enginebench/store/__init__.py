"""The run folder, in and out. docs/formats.md describes every file."""
