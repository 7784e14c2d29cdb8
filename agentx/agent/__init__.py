"""The loop: a view, a reply, its tool calls, again, until a true ending."""
