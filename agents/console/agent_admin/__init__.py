"""Pages of agents: the editor, versions, drafts, test runs."""
