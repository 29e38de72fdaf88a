"""Makes torchvision importable beside a torch without CUDA.

The registry's torchvision is built for CUDA. Beside a torch for CPUs its import fails at two operators that only its
compiled part declares, and with it every image processor of transformers. Declaring them first is enough: nothing here
uses them.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


@cache
def make_importable() -> Any:
    """Declare the operators once, if torchvision is installed and does not declare them itself.

    The declarations last as long as what this returns, which is kept.
    """
    import torch

    if find_spec("torchvision") is None or hasattr(torch.ops.torchvision, "nms"):
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(name + _SIGNATURE)
    return library
