"""How many tokens a model holds right now, and how we know."""
