"""Makes torchvision importable beside a torch for CPUs, before transformers is imported."""

from unprior.engines.transformers.torchvision import make_importable

make_importable()
