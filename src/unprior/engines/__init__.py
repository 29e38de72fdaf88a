"""Engines: what turns an image, a question and candidates into scores."""
