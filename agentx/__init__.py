"""Runs long agent tasks unattended, on a chain of models that fall back one to the next."""

__version__ = "0.1.0"
