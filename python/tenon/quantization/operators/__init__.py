"""The base classes of a user's own rules."""
