"""The command line: ``unprior``."""

from unprior.cli.app import main

__all__ = ["main"]
