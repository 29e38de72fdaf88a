"""What a run folder was made with, so that later commands can ask the same model about the same benchmark."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from unprior._files import is_file, read_whole, replacing
from unprior._validation import describe_validation_error
from unprior.cli.model import ModelOptions
from unprior.errors import UnpriorError

FILE = "run.json"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Model and benchmark of a run folder."""

    model: ModelOptions
    benchmark: str
    variant: str | None
    seed: int
    data_dir: str | None
    resize: int | None
    allow_censored: bool = False
    """Whether bounds are taken for scores; later commands that write the table again must not drop those rows."""

    @classmethod
    def of(
        cls,
        model: ModelOptions,
        benchmark: str,
        variant: str | None,
        seed: int,
        data_dir: Path | None,
        resize: int | None,
        *,
        allow_censored: bool = False,
    ) -> RunRecord:
        """The record of a command; files are noted by their full paths."""
        place = Path(benchmark)
        return cls(
            model,
            str(place.resolve()) if is_file(place) else benchmark,
            variant,
            seed,
            None if data_dir is None else str(data_dir.resolve()),
            resize,
            allow_censored,
        )

    def write(self, folder: Path) -> None:
        """Leave the record in the folder."""
        with replacing(folder / FILE) as temporary:
            temporary.write_text(json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> RunRecord:
        """Read the record of a folder."""
        path = folder / FILE
        if not path.exists():
            raise UnpriorError(
                f"{folder} does not say which model and benchmark it is about; `unprior run --out {folder}` with the "
                f"options it was made with notes that, and computes nothing anew"
            )
        content = read_whole(path)
        try:
            record: RunRecord = TypeAdapter(cls).validate_json(content, strict=True)
        except ValidationError as error:
            reason = describe_validation_error(error)
            raise UnpriorError(f"{path}: not a record of a run ({reason}); delete it and run again") from None
        # A file gives no leave to run code.
        return replace(record, model=replace(record.model, trust_remote_code=False))
