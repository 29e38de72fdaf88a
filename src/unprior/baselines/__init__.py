"""Methods to compare with: other ways to make a model look at the image."""
