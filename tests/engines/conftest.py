"""Models to test with."""

from engine_fixtures import engine, images, llava, model_folder  # noqa: F401
