"""The client for servers with the API of OpenAI, Anthropic, Gemini or Ollama."""
