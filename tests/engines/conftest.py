"""Models to test with."""

from engine_fixtures import engine, llava, model_folder, pictures  # noqa: F401
