"""One kind of table for everything that is printed, on a terminal, on a page, in LaTeX and as CSV."""
