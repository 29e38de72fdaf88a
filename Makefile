# Two commands matter: `make demo` shows the main job, `make test` checks everything.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt
DEMO := demo
ENGINES := .venv-engines
LOWEST := .venv-lowest
# All that need no small models, which are of architectures that only newer versions of transformers have.
LOWEST_TESTS := $(addprefix tests/,scores calibration evaluation tables plots benchmarks reproduction report \
	serving/test_api.py serving/test_clients.py runs/test_config.py runs/test_result.py \
	cli/test_app.py cli/test_calibrate.py cli/test_console.py cli/test_packaged_calibrator.py)
TRAINING := build/embedded
# The last commit of version 0.1.0.
BASE ?= c9ee599
MINUTES ?= 10

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz test-slow test-engines engines test-lowest release lint bench bench-startup bench-core bench-engine bench-baselines bench-studies bench-client bench-scale bench-against bench-suite bench-results bench-beyond bench-open bench-serve same-results lambda-figure support map docs train-embedded document-embedded clean

help:  ## List the commands.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(VENV)/core.stamp: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "unprior needs Python 3.11 or newer; choose one with make PYTHON=...")'
	@echo "Installing unprior into $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/model.stamp
	@echo "Installing the tools for tests and benchmarks …"
	@$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/model.stamp: $(VENV)/core.stamp
	@echo "Installing torch and transformers …"
	@$(PIP) --editable '.[hf]'
	@touch $@

demo: $(VENV)/model.stamp  ## Run the embedded model on the microworld, calibrate it, print the tables, write the report.
	$(BIN)/unprior run --out $(DEMO)

lint: $(VENV)/dev.stamp  ## Check style, types, and that nothing imports upward.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

test: lint  ## Check style, types and imports, then run all tests and the examples in the docstrings.
	@# One worker runs all of a file, so that what the file prepares is prepared once.
	@# Each worker has one core: further threads would only wait for each other.
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadscope --no-loadscope-reorder -m "not slow"
	@echo "The tests on a real vLLM did not run; \`make test-engines\` runs them."

fuzz: $(VENV)/dev.stamp  ## Hunt for faults with changed inputs for ten minutes; MINUTES, SEED, ONLY and CASE narrow it down.
	PYTHONPATH=bench:tests/support OMP_NUM_THREADS=1 $(BIN)/python -m fuzz.run --minutes $(MINUTES) \
	$(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY)) $(if $(CASE),--case $(CASE))

test-slow: $(VENV)/dev.stamp  ## The tests that need minutes or large tools, such as TeX.
	$(BIN)/pytest -m slow

$(ENGINES)/vllm.stamp: tests/support/vllm_environment.py pyproject.toml
	@echo "Installing vLLM for CPUs into $(ENGINES) …"
	@$(PYTHON) -m venv $(ENGINES)
	@$(ENGINES)/bin/python tests/support/vllm_environment.py .
	@touch $@

engines: $(ENGINES)/vllm.stamp  ## A virtual environment with a real vLLM, for tests.

test-engines: $(VENV)/dev.stamp $(ENGINES)/vllm.stamp  ## The engines against a real vLLM on this machine.
	UNPRIOR_VLLM_PYTHON=$(CURDIR)/$(ENGINES)/bin/python $(BIN)/pytest -rP -m engines tests/engines tests/serving

$(LOWEST)/lowest.stamp: pyproject.toml tools/lowest.py $(VENV)/dev.stamp
	@echo "Installing the oldest versions that pyproject.toml allows into $(LOWEST) …"
	@$(PYTHON) -m venv --clear $(LOWEST)
	@# torch stays the pinned one: uv does not see every place where pip finds a build for CPUs.
	@$(LOWEST)/bin/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt torch
	@$(BIN)/python tools/lowest.py | $(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --requirement -
	@$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --no-deps --editable .
	@touch $@

# What the libraries themselves warn of, beside newer ones that they did not know, is not our matter here.
test-lowest: $(LOWEST)/lowest.stamp  ## The tests of the core, of commands, pages and servers on the oldest versions of all dependencies.
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n auto --dist loadscope -m "not slow" -W ignore::DeprecationWarning $(LOWEST_TESTS)

release: $(VENV)/dev.stamp  ## Build wheel and sdist of the last commit into dist/, and try them on Python 3.11, 3.12 and 3.13, where there.
	$(BIN)/python tools/release.py

bench: bench-startup bench-core bench-engine bench-baselines bench-studies bench-client bench-against  ## Measure speed side by side with the straightforward way; updates docs/reference/measurements.md and other pages.

bench-startup: $(VENV)/dev.stamp  ## How long commands take to start, beside bare scripts of the same libraries.
	$(BIN)/python bench/startup.py --update docs/reference/measurements.md

bench-core: $(VENV)/dev.stamp  ## The calibration core against a row-by-row implementation.
	$(BIN)/python bench/core.py --update docs/reference/measurements.md

bench-engine: $(VENV)/dev.stamp  ## The transformers engine against the plain recipe.
	PYTHONPATH=tests/support $(BIN)/python bench/engine.py --update docs/reference/measurements.md

bench-baselines: $(VENV)/dev.stamp  ## Every method on the embedded model; updates docs/explanation/baselines.md.
	$(BIN)/python bench/baselines.py --update docs/explanation/baselines.md --image docs/images/baseline-views.jpg

bench-studies: $(VENV)/dev.stamp  ## Every study over existing scores; updates docs/reference/measurements.md.
	OMP_NUM_THREADS=1 $(BIN)/python bench/studies.py --update docs/reference/measurements.md

bench-client: $(VENV)/dev.stamp  ## The HTTP client against bare loops, on a real vLLM too after `make engines`; updates docs/how-to/servers.md.
	UNPRIOR_VLLM_PYTHON="$${UNPRIOR_VLLM_PYTHON:-$(wildcard $(CURDIR)/$(ENGINES)/bin/python)}" OMP_NUM_THREADS=1 \
	PYTHONPATH=tests/support $(BIN)/python bench/client.py --update docs/how-to/servers.md

bench-against: $(VENV)/dev.stamp  ## What this state costs against another commit (BASE), both measured in turn; updates docs/reference/measurements.md.
	@test -d build/base-$(BASE) || git worktree add --quiet --detach build/base-$(BASE) $(BASE)
	$(BIN)/python bench/against.py --base build/base-$(BASE) --name $(BASE) --update docs/reference/measurements.md

bench-suite: $(VENV)/dev.stamp  ## What the fast tests cost against those of another commit (BASE), test by test.
	@test -d build/base-$(BASE) || git worktree add --quiet --detach build/base-$(BASE) $(BASE)
	$(BIN)/python bench/suite.py --base build/base-$(BASE) --work build/suite

bench-results: $(VENV)/dev.stamp  ## SPC on three fresh worlds; updates the result table of the README; takes a few minutes.
	OMP_NUM_THREADS=1 $(BIN)/python bench/results.py --update README.md --packaged docs/explanation/embedded-model.md

bench-beyond: $(VENV)/dev.stamp  ## Certified retention and the stable prior on fresh worlds; updates docs/explanation; takes about 25 minutes.
	$(BIN)/python bench/beyond.py --update docs/explanation

bench-open: $(VENV)/dev.stamp  ## Open answers on fresh worlds beside other decoders, and their cost; updates docs/explanation/open-answers.md; takes about 20 minutes.
	PYTHONPATH=tests/support $(BIN)/python bench/open_answers.py --update docs/explanation/open-answers.md

same-results: $(VENV)/dev.stamp  ## Compare every result with that of another commit (BASE), value by value; takes about ten minutes.
	@test -d build/base-$(BASE) || git worktree add --quiet --detach build/base-$(BASE) $(BASE)
	$(BIN)/python bench/same_results.py --base build/base-$(BASE) --work build/same-results

bench-scale: $(VENV)/dev.stamp $(ENGINES)/vllm.stamp  ## The cost model against what a real vLLM counts; updates docs/how-to/many-nodes.md.
	UNPRIOR_VLLM_PYTHON=$(CURDIR)/$(ENGINES)/bin/python PYTHONPATH=tests/support $(BIN)/python bench/scale.py --update docs/how-to/many-nodes.md

bench-serve: $(VENV)/dev.stamp  ## What serving adds to a model's own answer, on a real vLLM too after `make engines`; updates docs/how-to/serve.md.
	UNPRIOR_VLLM_PYTHON="$${UNPRIOR_VLLM_PYTHON:-$(wildcard $(CURDIR)/$(ENGINES)/bin/python)}" OMP_NUM_THREADS=1 \
	PYTHONPATH=tests/support $(BIN)/python bench/serve.py --update docs/how-to/serve.md

lambda-figure: $(VENV)/dev.stamp  ## Write the examples of the λ figure of the docs from the run of `make demo`.
	$(BIN)/python tools/lambda_figure.py --run $(DEMO)

support: $(VENV)/dev.stamp  ## Try every architecture on small random models; writes the support matrix of `unprior models` and docs/reference/models.md.
	PYTHONPATH=tests/support OMP_NUM_THREADS=1 $(BIN)/python tools/support.py

docs: $(VENV)/dev.stamp  ## Build the documentation site into build/docs/html; warnings are errors.
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -q -b html -d build/docs/doctrees docs build/docs/html
	@echo "The site is in build/docs/html/index.html. Browsers show its figure of λ only from a server:"
	@echo "  $(BIN)/python -m http.server -d build/docs/html"

map: $(VENV)/dev.stamp  ## Write the map of the package into CONTRIBUTING.md.
	$(BIN)/python tools/map.py --update CONTRIBUTING.md

train-embedded: $(VENV)/dev.stamp  ## Train the embedded model from scratch and put the chosen one into the package (over an hour).
	$(BIN)/python training/train.py --out $(TRAINING)
	OMP_NUM_THREADS=1 $(BIN)/python training/select_default.py --out $(TRAINING)
	OMP_NUM_THREADS=1 $(BIN)/python training/calibrate.py --out $(TRAINING)

document-embedded: $(VENV)/dev.stamp  ## Measure all trained models on fresh worlds; updates docs/explanation/embedded-model.md.
	OMP_NUM_THREADS=1 $(BIN)/python training/document.py --out $(TRAINING)

clean:  ## Remove what the commands made, except trained models.
	rm -rf $(VENV) $(ENGINES) $(LOWEST) $(DEMO) build/docs docs/executed dist fuzz-failures .mypy_cache .pytest_cache .ruff_cache .hypothesis
