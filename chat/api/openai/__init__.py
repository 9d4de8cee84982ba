"""The API under `/v1` that OpenAI's clients call: agents are models by name."""
