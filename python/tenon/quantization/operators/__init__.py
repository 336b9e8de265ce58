"""What rules of one's own are derived from."""
