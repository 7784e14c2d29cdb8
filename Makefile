# Two commands on a fresh machine: `make demo` and `make test`. Each makes its own environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check test-real bench bench-chain bench-context bench-long clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $(STAMP)

demo: $(STAMP)        ## the main job: on the embedded model where this machine can run it, else scripted
	$(BIN)/agentx demo --best

test: $(STAMP)        ## every test that needs no model
	$(BIN)/python -m pytest -n auto -m "not real and not wheel"

check: $(STAMP)       ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

test-real: $(STAMP)   ## tests on real llama.cpp and Ollama servers; gets them first (about 1 GB)
	$(BIN)/python -m pytest -m real tests/local

bench: $(STAMP)
	$(BIN)/python bench/run.py
	$(BIN)/python bench/windows.py

bench-long: $(STAMP)  ## own time of a turn and memory at 10,000 entries (3 minutes)
	$(BIN)/python bench/long.py

bench-chain: $(STAMP)  ## the chain next to other fallback chains, which it installs under .cache/ (10 minutes)
	$(BIN)/python bench/chain.py

bench-context: $(STAMP)  ## a long job by each policy and by other agents, which it installs under .cache/ (15 minutes)
	$(BIN)/python bench/context.py

clean:
	rm -rf $(VENV)
