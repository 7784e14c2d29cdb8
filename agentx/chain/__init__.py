"""The best reply that any link gives: what failed, how long to rest, who is next."""
