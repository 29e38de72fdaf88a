"""What goes beyond the paper."""
