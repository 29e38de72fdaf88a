"""Models behind a server that speaks OpenAI's API, such as vLLM."""
