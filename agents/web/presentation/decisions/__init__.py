"""What a run asks people: approvals, questions, limits."""
