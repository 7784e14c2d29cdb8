"""The long job of `bench/context.py`: what it asks, the model that does it, and what was seen of it."""
