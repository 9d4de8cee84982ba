"""What administrators set up: agents, tools, servers, databases, models and workflows."""
