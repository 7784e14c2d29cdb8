"""One journal, many views: what a model is sent, made for the window of that model."""
