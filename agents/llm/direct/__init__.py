"""The client for servers that speak OpenAI's format, Ollama among them."""
