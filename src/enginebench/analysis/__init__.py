"""Numbers derived from records: metrics, windows, statistics, checks and the summary. Pure."""
