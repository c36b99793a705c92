# make demo, make test: each sets everything up on a fresh machine first; a second call is quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0
# Some virtual machines advertise AMX and do not bear it: any bfloat16 matrix product ends there by SIGILL. Elsewhere this costs speed alone.
export ONEDNN_MAX_CPU_ISA ?= AVX512_CORE_BF16

.PHONY: demo test test-all zoo zoo-prove zoo-fix folklore bench lint docs setup clean

demo: $(VENV)/.demo
	@$(BIN)/trainsleuth demo

test: $(VENV)/.dev lint
	$(BIN)/python -m pytest tests -n 2

test-all: $(VENV)/.frameworks lint
	$(BIN)/python -m pytest tests -n 2 -m "long or not long"
	$(BIN)/python -m tests.readers.fuzz_with_atheris
	$(BIN)/python zoo/check.py healthy/lightning healthy/hf_trainer healthy/accelerate stall/steps-withheld

zoo: $(VENV)/.frameworks
	$(BIN)/python zoo/check.py
	$(BIN)/python zoo/attach.py
	$(BIN)/python zoo/switches.py
	$(BIN)/python zoo/beside_anomaly.py

zoo-fix: $(VENV)/.frameworks
	$(BIN)/python zoo/fix.py

zoo-prove: $(VENV)/.frameworks
	$(BIN)/python zoo/prove.py --fix --jobs $$(nproc)

folklore: $(VENV)/.frameworks
	$(BIN)/python zoo/folklore.py

bench: $(VENV)/.dev
	$(BIN)/pip install --quiet torchmortem  # the monitor that we measure ourselves against
	$(BIN)/python bench/overhead.py
	$(BIN)/python bench/reading.py
	$(BIN)/python bench/reading_tensorboard.py
	$(BIN)/python bench/many_ranks.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python docs/make_pages.py --check

docs: $(VENV)/.dev
	$(BIN)/python docs/make_pages.py

setup: $(VENV)/.dev

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

# torch first and by exact version: a plain `torch` would pull gigabytes of CUDA
$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet $(TORCH) numpy pyyaml
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(BIN)/pip install --quiet --editable ".[dev]"
	@touch $@

$(VENV)/.frameworks: $(VENV)/.dev
	$(BIN)/pip install --quiet --editable ".[dev,lightning,transformers,loggers,fuzz]"
	@touch $@

clean:
	rm -rf $(VENV) .trainsleuth
