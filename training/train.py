"""Train the embedded model from scratch: ``python training/train.py --out build/embedded``.

Seeds train side by side, one process and one thread each: on a small machine that is faster than sharing threads, and
it makes every run reproducible. Stop at any time; the same command goes on from the last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from recipe import STRENGTHS, Recipe


def main() -> None:
    """Train every seed, each in its own process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/embedded"), help="folder for checkpoints and models")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--strengths", nargs="+", choices=tuple(STRENGTHS), default=list(STRENGTHS))
    parser.add_argument(
        "--tower",
        choices=("shipped", "new"),
        default="shipped",
        help="take the vision tower of the model in the package, or train one (about half an hour more)",
    )
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only is not None:
        train_seed(arguments.only, arguments.out / f"seed-{arguments.only}", arguments.strengths, arguments.tower)
        return
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, __file__, "--out", str(arguments.out), "--tower", arguments.tower]
    command += ["--strengths", *arguments.strengths, "--only"]
    children = [subprocess.Popen([*command, str(seed)], env=environment) for seed in arguments.seeds]
    try:
        failed = [child.wait() for child in children]
    except KeyboardInterrupt:
        for child in children:
            child.terminate()
        sys.exit("stopped; the same command goes on from the last checkpoints")
    sys.exit(1 if any(failed) else 0)


def train_seed(seed: int, folder: Path, strengths: list[str], tower_from: str = "shipped") -> None:
    """All stages for one seed; every strength starts from the same grounded model."""
    import torch

    from unprior.engines.transformers.engine import require_torch

    require_torch()  # a torchvision that does not fit torch would keep transformers from loading
    from build import build_model, build_tokenizer, export
    from decoder import Decoder, Feature, Writer, image_items, text_items, train_decoder
    from progress import Checkpoints, Reporter
    from unprior.embedded import FOLDER
    from vision import Tower, adopt_tower, train_classifier, train_tower

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    recipe, checkpoints, report = Recipe(), Checkpoints(folder / "checkpoints"), Reporter(f"seed {seed}:")
    tokenizer = build_tokenizer(recipe)
    model = build_model(recipe, tokenizer, seed)
    tower, decoder = Tower(model, recipe.width), Decoder(model)
    writer = Writer(tokenizer, model.config.image_seq_length)
    if tower_from == "shipped":
        adopt_tower(tower, FOLDER)
    else:
        train_tower(tower, recipe, seed, checkpoints, report)
    features = Feature.draw(tower.eval(), recipe, seed, report)
    if tower_from == "shipped":
        train_classifier(tower, features.values[:, :, 0], recipe, checkpoints, report)
    train_decoder("text", recipe.text, decoder, writer, text_items(recipe), seed, checkpoints, report)
    train_decoder(
        "joint", recipe.joint, decoder, writer, image_items(recipe, features, None), seed, checkpoints, report
    )
    for strength in strengths:
        checkpoints.load("joint", decoder)
        items = image_items(recipe, features, strength)
        train_decoder(f"prior-{strength}", recipe.prior, decoder, writer, items, seed, checkpoints, report)
        export(model, tokenizer, recipe, folder / strength)
    record = {
        "seed": seed,
        "tower": tower_from,
        "recipe": asdict(recipe),
        "strengths": STRENGTHS,
        "seconds": report.seconds_by_stage,
    }
    (folder / "training.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
