"""What administrators do with patterns before they hold: try, test on the past, add, judge."""
