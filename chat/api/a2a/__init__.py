"""Agent2Agent: agents of other products send tasks to ours."""
