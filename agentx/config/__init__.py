"""Everything that is set rather than done: paths, shipped data, cards, layers with their origin, settings."""
