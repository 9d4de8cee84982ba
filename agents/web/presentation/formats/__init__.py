"""Numbers, dates, badges, icons, charts and diffs."""
