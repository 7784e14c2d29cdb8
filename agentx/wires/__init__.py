"""How a model is spoken to: canonical messages, and one file for each protocol."""
