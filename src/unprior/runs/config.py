"""Everything that determines a run, in one place: for Python, for the command line, and for the file in its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from unprior._files import as_path
from unprior.benchmarks.table_columns import parse_columns
from unprior.benchmarks.tasks import check_task
from unprior.embedded import NAME as EMBEDDED
from unprior.engines.load import (
    BATCH_SIZE,
    BEAMS,
    CANDIDATES,
    CONCURRENCY,
    ENGINES,
    MAX_SIDE,
    NEW_TOKENS,
    check_loading,
)
from unprior.errors import UnpriorError, did_you_mean, format_option
from unprior.prompts import PromptLayout
from unprior.runs.option import Flag, Option

if TYPE_CHECKING:
    from unprior.calibration import SelectivePriorCalibrator

FILE = "run.toml"
_WORDING = PromptLayout()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which model, and how it is loaded."""

    name: Annotated[
        str | tuple[str, ...], Flag("embedded (comes with the package), or a folder or hub id of a model.", "model")
    ] = "embedded"
    """Several names are for :func:`unprior.run_models` and `unprior run`."""
    revision: Annotated[str | None, Flag("Branch, tag or commit on the hub.")] = None
    trust_remote_code: Annotated[
        bool,
        Flag(
            "Run Python code that comes with the model, with all your rights: read it first. A hub model needs the "
            "commit that you have read as --revision, all 40 digits; a local folder is used as it is.",
        ),
    ] = False
    dtype: Annotated[str, Flag("auto (as stored), float32, bfloat16 or float16; never quantised.")] = "auto"
    device: Annotated[str | None, Flag("cpu, cuda, cuda:1, …; by default the first accelerator there is.")] = None
    device_map: Annotated[str | None, Flag("Spread the model over devices, e.g. auto (needs accelerate).")] = None
    attention: Annotated[str | None, Flag("Attention implementation, e.g. sdpa or eager.")] = None
    image_backend: Annotated[str, Flag("What prepares images: auto, pil or torchvision.")] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """What runs the model, and how it is asked."""

    name: Annotated[
        str, Flag("transformers, vllm (both in this process), or openai: a server, with --base-url.", "engine")
    ] = ENGINES[0]
    base_urls: Annotated[
        tuple[str, ...],
        Flag("Server for --engine openai; given several times, equal servers take turns.", "base_url", repeated=True),
    ] = ()
    concurrency: Annotated[int, Flag("Questions in flight to servers.", min=1)] = CONCURRENCY
    tensor_parallel: Annotated[int, Flag("GPUs that --engine vllm spreads the model over.", min=1)] = 1
    batch_size: Annotated[int, Flag("Questions in one pass; results do not depend on it.", min=1)] = BATCH_SIZE
    max_new_tokens: Annotated[int, Flag("Longest original answer, in tokens; thinking needs many.", min=1)] = NEW_TOKENS
    allow_censored: Annotated[bool, Flag("Take bounds for candidates outside the top tokens that a server shows.")] = (
        False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptConfig:
    """The wording around a question, see :class:`unprior.prompts.PromptLayout`; ``\\n`` stands for a new line."""

    option_line: Annotated[str, Flag("One line per option.")] = _WORDING.option_line
    choice_instruction: Annotated[str, Flag("Closes a multiple-choice question.")] = _WORDING.choice_instruction
    yes_no_instruction: Annotated[str, Flag("Closes a yes/no question.")] = _WORDING.yes_no_instruction
    open_instruction: Annotated[str, Flag("Closes a question without options.")] = _WORDING.open_instruction
    scoring_suffix: Annotated[str, Flag("Added when candidates are scored.")] = _WORDING.scoring_suffix.replace(
        "\n", "\\n"
    )
    continuation: Annotated[str, Flag("How a candidate starts the answer.")] = _WORDING.continuation
    instruction_before: Annotated[str, Flag("Text before every question.")] = _WORDING.instruction_before
    system: Annotated[str, Flag("System message before every question; none if it is empty.")] = _WORDING.system
    template_args: Annotated[
        tuple[str, ...],
        Flag("NAME=VALUE for the chat template, e.g. enable_thinking=false.", "template_arg", repeated=True),
    ] = ()

    @property
    def layout(self) -> PromptLayout:
        """The wording itself."""
        names = [each.name for each in fields(PromptLayout)]
        return PromptLayout(**{name: getattr(self, name).replace("\\n", "\n") for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkConfig:
    """What is asked."""

    name: Annotated[
        str,
        Flag(
            "A benchmark of `unprior data list`, a file of questions (JSON lines), or a table of them (.tsv, .parquet, "
            "a folder of Parquet files).",
            "benchmark",
        ),
    ] = "microworld"
    columns: Annotated[
        tuple[str, ...],
        Flag(
            "Of a table: FIELD=COLUMN, such as question=text or options=A,B,C; FIELD= leaves a column out.",
            "column",
            repeated=True,
        ),
    ] = ()
    variant: Annotated[str | None, Flag("Other questions about the same images; `unprior data show` lists them.")] = (
        None
    )
    task: Annotated[
        str | None,
        Flag("closed (questions with options), open (without, the model proposes answers), or both. By default all."),
    ] = None
    candidates: Annotated[
        int, Flag("Different answers to keep of those that the model proposes to an open question.", min=2, max=BEAMS)
    ] = CANDIDATES
    seed: Annotated[int, Flag("Which world to draw, for a drawn benchmark.", min=0, max=999)] = 0
    data_dir: Annotated[
        Path | None, Flag("Folder that holds downloaded benchmarks; by default UNPRIOR_DATA or the platform's cache.")
    ] = None
    resize: Annotated[
        int | None,
        Flag(
            "Bring images to this square size first, e.g. 512; 0 leaves them as they are. By default as in the paper.",
            min=0,
            max=MAX_SIDE,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodConfig:
    """How the answers are calibrated, and which other methods answer."""

    epsilon_cs: Annotated[
        float, Flag("Largest loss of commonsense accuracy to accept on a development task.", min=0, max=1)
    ] = 0.04
    uncertainty: Annotated[bool, Flag("Fit the uncertainty-aware version.")] = False
    retention: Annotated[
        str,
        Flag(
            "What ε bounds: the loss on the development pairs (paper), the harm on new pairs with confidence 1 − δ "
            "(certified), or that harm on average (expected)."
        ),
    ] = "paper"
    delta: Annotated[float, Flag("δ: how often a certified promise may break.", min=0, max=0.5)] = 0.1
    strength: Annotated[
        str | None, Flag("With certified or expected: split (fitted on pairs set aside), fixed (λ = 1), or a number.")
    ] = None
    target_mixture: Annotated[
        str | None,
        Flag(
            "Subcategories that the promise is for: cdh-bench (its test pairs), or a JSON file of shares; by default "
            "mixed as the development pairs are."
        ),
    ] = None
    prior: Annotated[
        str,
        Flag(
            "What else is asked about yes/no questions with two claims: plain (nothing), symmetric (claims exchanged, "
            "without the image), canonical (one form in both orders).",
        ),
    ] = "plain"
    strict: Annotated[
        bool,
        Flag("With the canonical prior: the same answer however a question about two claims is asked."),
    ] = False
    baselines: Annotated[
        tuple[str, ...], Flag("Also let these methods answer, separated by commas, or all; see `unprior baseline`.")
    ] = ()
    revis_data: Annotated[
        Path | None, Flag("What REVIS learns from (JSON lines); the embedded model brings its own.")
    ] = None
    revis_strength: Annotated[float | None, Flag("α of REVIS; by default 1.6 for Qwen and 1.1 for others.")] = None
    cost_examples: Annotated[int, Flag("Examples on which the cost of every method is measured.", min=1)] = 16

    @property
    def calibrator(self) -> SelectivePriorCalibrator:
        """The calibrator to fit."""
        from unprior.benchmarks.mixtures import read_mixture
        from unprior.calibration import SelectivePriorCalibrator
        from unprior.calibration.strength_rules import parse_strength

        return SelectivePriorCalibrator(
            epsilon_cs=self.epsilon_cs,
            uncertainty=self.uncertainty,
            retention=self.retention,  # type: ignore[arg-type]  # any text; the calibrator checks it, and the prior
            delta=self.delta,
            strength=parse_strength(self.strength),
            target_mixture=None if self.target_mixture is None else read_mixture(self.target_mixture),
            prior=self.prior,  # type: ignore[arg-type]
            strict=self.strict,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputConfig:
    """Where everything goes."""

    folder: Annotated[Path, Flag("Folder for everything that is made.", "out")] = Path("unprior-run")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Everything that determines a run.

    >>> config = RunConfig.from_options(model="embedded", epsilon_cs=0.1, out="demo")
    >>> config.method.epsilon_cs, config.output.folder.name, config.benchmark.name
    (0.1, 'demo', 'microworld')
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    benchmark: BenchmarkConfig = field(default_factory=BenchmarkConfig)
    method: MethodConfig = field(default_factory=MethodConfig)
    output: OutputConfig = field(default_factory=OutputConfig)

    @classmethod
    def from_options(cls, **options: Any) -> RunConfig:
        """A configuration from options named as on the command line, ``batch_size`` for ``--batch-size``."""
        return cls().with_options(**options)

    def with_options(self, **options: Any) -> RunConfig:
        """The same with some options changed."""
        changed: dict[str, dict[str, Any]] = {}
        for name, value in options.items():
            if name not in OPTIONS:
                raise UnpriorError(f"{name}: no such option of a run{did_you_mean(name, OPTIONS)}")
            option = OPTIONS[name]
            changed.setdefault(option.group, {})[option.field] = option.convert(value)
        return replace(self, **{group: replace(getattr(self, group), **new) for group, new in changed.items()})

    def get(self, option: str) -> Any:
        """The value of an option by its name on the command line."""
        place = OPTIONS[option]
        return getattr(getattr(self, place.group), place.field)

    @property
    def models(self) -> tuple[str, ...]:
        """The name of the model, or of all of them.

        >>> RunConfig().models, RunConfig.from_options(model=["embedded", "my-model"]).models
        (('embedded',), ('embedded', 'my-model'))
        """
        return (self.model.name,) if isinstance(self.model.name, str) else self.model.name

    def check(self, *, needs_internals: bool = False) -> None:
        """Refuse what cannot be, or does not fit together, before anything is computed.

        >>> RunConfig.from_options(engine="openai").check()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        unprior.errors.UnpriorError: engine='openai' (command line: --engine openai) goes with the address of a ser...
        """
        for option in OPTIONS.values():
            option.check(self.get(option.name))
        check_task(self.benchmark.task)
        parse_columns(self.benchmark.columns)
        if self.benchmark.task in ("open", "both") and self.benchmark.variant is not None:
            raise UnpriorError(
                f"{format_option('task', self.benchmark.task)} and {format_option('variant', self.benchmark.variant)} "
                f"exclude each other: open questions are made of a benchmark's own ones"
            )
        self.method.calibrator.check_parameters()
        if self.method.baselines:
            from unprior.baselines.names import choose_methods

            choose_methods(self.method.baselines)  # refuses names that no method has
        check_loading(**self.loading, needs_internals=needs_internals)

    @property
    def loading(self) -> dict[str, Any]:
        """The arguments of :func:`unprior.engines.load.load_engine`."""
        if len(self.models) > 1:
            raise UnpriorError(f"{format_option('model', self.models)}: give one model here; only runs take several")
        model, engine = asdict(self.model), asdict(self.engine)
        for name in ("batch_size", "allow_censored"):
            del engine[name]
        names = {"model": model.pop("name"), "engine": engine.pop("name")}
        return names | model | engine | {"layout": self.prompt.layout, "template_args": self.prompt.template_args}

    def _located_model(self, name: str) -> str:
        from unprior._files import exists

        is_local = self.engine.name != "openai" and name != EMBEDDED and exists(Path(name))
        return str(Path(name).resolve()) if is_local else name

    def located(self) -> RunConfig:
        """The same with full paths of input files, which hold wherever it is read again."""
        from unprior._files import exists, is_file
        from unprior.benchmarks.registry import BENCHMARKS

        place, folder, data = Path(self.benchmark.name), self.benchmark.data_dir, self.method.revis_data
        mixture = self.method.target_mixture
        return self.with_options(
            model=tuple(map(self._located_model, self.models)),
            benchmark=str(place.resolve()) if str(place) not in BENCHMARKS and exists(place) else self.benchmark.name,
            data_dir=None if folder is None else folder.resolve(),
            revis_data=None if data is None else data.resolve(),
            target_mixture=str(Path(mixture).resolve()) if mixture and is_file(Path(mixture)) else mixture,
        )

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Plain values by group and name; what is not set is left out."""
        return {
            group: {name: _plain(value) for name, value in values.items() if value is not None}
            for group, values in asdict(self).items()
        }

    def to_toml(self) -> str:
        """As the text of a file that ``--config`` reads."""
        import tomli_w

        return tomli_w.dumps(self.as_dict())

    def write(self, *, early: bool = False) -> None:
        """Leave the configuration in the folder of the run; ``early``, before it succeeded, only in a new folder."""
        from unprior._files import replacing
        from unprior.runs.folder import OLD_FILE

        folder = self.output.folder
        if early and any((folder / name).exists() for name in (FILE, OLD_FILE)):
            return
        with replacing(folder / FILE) as temporary:
            temporary.write_text(self.located().to_toml(), encoding="utf-8")
        (folder / OLD_FILE).unlink(missing_ok=True)  # of version 0.1.0, which this file replaces

    @classmethod
    def read(cls, folder: str | Path) -> RunConfig:
        """The configuration of a run folder, as it was made: what it says about code that may run is not believed."""
        from unprior.runs.folder import read_folder

        return read_folder(as_path("folder", folder))

    @classmethod
    def from_file(cls, path: str | Path) -> RunConfig:
        """Read a configuration; a run folder stands for the file in it. It cannot allow a model's code to run."""
        from unprior.runs.folder import read_file

        return read_file(as_path("path", path))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value


def _options() -> Mapping[str, Option]:
    found = {}
    groups: Mapping[str, Callable[[], Any]] = {each.name: each.default_factory for each in fields(RunConfig)}  # type: ignore[misc]
    for group, kind in groups.items():
        hints = get_type_hints(kind, include_extras=True)
        for each in fields(kind()):
            what, flag = get_args(hints[each.name])
            option = Option(group, each.name, what, each.default, flag)
            found[option.name] = option
    return found


OPTIONS: Mapping[str, Option] = _options()
"""Every setting of a run, by its name on the command line."""
