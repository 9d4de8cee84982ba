"""Pages of what happened: runs, documents, experiences, audit log, deletion."""
