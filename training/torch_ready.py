"""Imported for what it does: a torchvision that does not fit torch no longer keeps transformers from loading."""

from unprior.engines.transformers.engine import require_torch

require_torch()
