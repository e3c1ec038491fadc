# Everything starts here:  make paper  (raw data to PDF)  and  make test.
# This file only puts steps in order; Snakefile, pyproject.toml and requirements.lock say what they do.

PYTHON ?= python3
SCALE  ?=
# Other keys of the configuration, for example CONFIG="missing_data=fail".
CONFIG ?=
# Extra arguments, for example PYTEST="-m 'not slow'" or SNAKEMAKE="--keep-going".
PYTEST    ?=
SNAKEMAKE ?=
UPGRADE   ?=
# Numbers of patterns of `make peers`.
SIZES     ?= 100 400
# What `make verify` runs again: a share of the CPU time, drawn with a seed.
SHARE     ?=
DRAW      ?=
# What `make number` looks up, and the CPU seconds that it may take.
ID        ?=
SECONDS   ?=
# What `make test-wheel` tests the wheel with; those that are not there are skipped by name.
PYTHONS   ?= python3.11 python3.12 python3.13 python3.14

VENV  := .venv
BIN   := $(VENV)/bin
# Made last, inside the environment: there is no stamp after a failed or half-removed installation.
READY := $(VENV)/.installed
# Made when the project is installed there, in place: only the extensions have to be built again.
BUILT := $(VENV)/.built
KERNELS := $(wildcard src/gpcmc/*/*.pyx src/gpcmc/*/*.h src/studies/*/*/*.pyx)

# What is given is a text, whatever stands in it: make expands no part of it, and recipes read it from their environment,
# in which no shell runs it. An id with $(...) or a quote in it is an id.
GIVEN := SCALE CONFIG PYTEST SNAKEMAKE UPGRADE SIZES SHARE DRAW ID SECONDS PYTHONS
$(foreach name,$(GIVEN),$(eval override $(name) := $$(value $(name))))
export $(GIVEN)
RUN = $(BIN)/python workflow/scripts/start.py

TEX_PACKAGES := latexmk lmodern texlive-fonts-recommended texlive-latex-base texlive-latex-extra texlive-latex-recommended
APT := DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300

# The scripts that Snakemake starts must find this environment, and no other.
export PATH := $(CURDIR)/$(BIN):$(PATH)
unexport PYTHONPATH PYTHONHOME

define STYLE
$(BIN)/ruff check .
$(BIN)/ruff format --check .
$(BIN)/snakefmt --check Snakefile workflow/rules
$(BIN)/cython-lint src
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two Snakemake runs in one folder would lock each other out.
.NOTPARALLEL:
.PHONY: help paper config test check package lint docs links dist test-wheel sanitize test-slurm test-container bench peers peer-r keep resume renew verify republish moved number rulegraph archive crate latex lock clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

paper: $(BUILT) latex ## Raw data to results/<scale>/paper.pdf and paper.html (another scale: SCALE=smoke)
	$(RUN) all --cores all
	@cat "results/$${SCALE:-$$(sed -n 's/^scale: *\([a-z0-9-]*\).*/\1/p' config/default.yaml)}/summary.txt"

config: $(BUILT) ## Print every setting of a scale, checked (SCALE=published)
	@$(BIN)/python workflow/scripts/config.py

test: $(BUILT) latex ## Run all tests
	PYTEST_ADDOPTS="$$PYTEST" $(BIN)/python -m pytest

check: $(BUILT) ## The fast loop: style, types and the tests that take no more than a tenth of a second
	$(STYLE)
	$(BIN)/mypy
	PYTEST_ADDOPTS="$$PYTEST" $(BIN)/python -m pytest --quiet -m "not slow" --durations=0 --durations-min=1 tests/gpcmc tests/recheck tests/studies

package: $(BUILT) ## Install the project in .venv, in place: edits count at once

lint: $(BUILT) ## Check style, types and the workflow
	$(STYLE)
	$(BIN)/mypy
	$(BIN)/snakemake --lint

keep: $(BUILT) ## Store the rows of a finished published run, and what was made of them, in data/reference
	$(RUN) keep --cores all

resume: $(BUILT) ## Put kept rows where their jobs would write them, so that `make paper SCALE=published` runs what is missing
	$(RUN) resume --cores all

verify: resume ## Run kept rows again, drawn with a seed, 3 % of their CPU time, and compare (SHARE=0.01 DRAW=7)
	$(RUN) verify --cores all

renew: $(BUILT) ## Make kept rows again that other code made, and keep each method as soon as it is whole (goes on where it was)
	$(RUN) renew --cores all

republish: $(BUILT) latex ## A version's results in a night: the published scale, its verdicts, kept (goes on where it was)
	SCALE=published $(RUN) resume --cores all
	SCALE=published $(RUN) keep --cores all --keep-going

moved: $(BUILT) ## Which numbers of the last run are others than in the run before (SCALE=standard)
	@$(RUN) moved --cores 1 --quiet host progress reason rules

number: $(BUILT) ## One number: printed, ours, its rows, and these run again within a minute (ID=table4/P7/new/mae-med SECONDS=60)
	@$(RUN) number --cores all --quiet host progress reason rules

rulegraph: $(BUILT) ## Draw the rules and what they rest on: docs/rulegraph.svg (needs graphviz)
	$(BIN)/snakemake all --rulegraph --cores 1 --config scale=published \
	  | awk '/label = "compile"/ { node = $$1; sub(/\[.*/, "", node); next } $$1 != node' \
	  | sed 's/fontsize=10/fontsize=15, height=0.3, margin="0.06,0.03"/; s/margin=0]/margin=0, rankdir=LR, nodesep=0.07, ranksep=0.3]/' \
	  | { tred 2>/dev/null; } | dot -Tsvg > docs/rulegraph.svg

archive: $(BUILT) latex ## One file with sources, results, PDF and checksums: build/gpcmc-<scale>.tar.gz
	$(RUN) archive --cores all

crate: $(BUILT) ## Describe a run, with its files, as a Workflow Run RO-Crate: build/gpcmc-<scale>.crate.zip
	$(RUN) crate --cores all

docs: $(BUILT) ## Build the pages in build/docs: gallery executed, every warning an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html"

links: docs ## Ask for every address that the pages name (needs the internet)
	$(BIN)/sphinx-build --quiet -b linkcheck -d build/doctrees docs build/links

dist: $(BUILT) ## Source distribution and wheel of the library in dist/, checked as an index would
	$(BIN)/python -m build --no-isolation --outdir dist .
	test -x build/twine/bin/twine || { $(PYTHON) -m venv build/twine && build/twine/bin/pip install --quiet twine; }
	build/twine/bin/twine check --strict dist/*

test-wheel: dist ## Test wheels in empty environments, one for each Python (PYTHONS="python3.12 python3.13")
	bash tests/wheel.sh $$PYTHONS

sanitize: $(BUILT) ## The library's tests under python -O, and under sanitisers and checks of bounds (gcc)
	bash tests/sanitize.sh

test-slurm: $(BUILT) ## Run the tiny scale through a throw-away SLURM cluster on this machine (Debian, root)
	TEST_SLURM=1 $(BIN)/python -m pytest --numprocesses=0 tests/workflow/test_slurm.py

test-container: $(BUILT) ## Run the steps of the container's recipe in an empty root (debootstrap, root)
	TEST_CONTAINER=1 $(BIN)/python -m pytest --numprocesses=0 tests/workflow/test_container.py

bench: $(BUILT) ## Measure speed and memory on one core: ratios in one run, and growth up to 5000 patterns
	$(BIN)/snakemake results/tiny/data/pima-indians-diabetes.csv.json --cores 1 --config scale=tiny --quiet all
	set -e; for script in benchmarks/evidence.py benchmarks/fit.py benchmarks/default.py benchmarks/mcmc.py benchmarks/orthant.py benchmarks/large.py benchmarks/choose.py benchmarks/classes.py; do OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python "$$script"; done

peers: $(BUILT) peer-gpy peer-numpyro peer-r peer-botorch peer-gpboost peer-gpflow ## Error against CPU seconds beside other packages (the largest: SIZES=1000)
	$(BIN)/snakemake results/tiny/data/crabs.csv.json --cores 1 --config scale=tiny --quiet all
	$(BIN)/python benchmarks/peers/run.py $$SIZES
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/peers/heldout.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/rectangle.py
	$(BIN)/python benchmarks/spatial.py

peer-%: benchmarks/peers/%.txt
	test -x build/peers/$*/bin/python || $(PYTHON) -m venv build/peers/$*
	build/peers/$*/bin/pip install --quiet --disable-pip-version-check --only-binary :all: --requirement $< \
	  || echo "$* cannot be installed: it will be shown as missing"

# TruncatedNormal is no package of Debian's; where R has it, it takes part.
peer-r:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  $(APT) install --no-install-recommends r-base-core r-cran-mvtnorm >/dev/null || echo "R could not be installed"; \
	elif ! command -v Rscript >/dev/null; then echo "There is no R here: mvtnorm will be shown as missing"; fi

latex: ## Install LaTeX with apt where it is missing and we may; otherwise say what to install
	@if command -v pdflatex >/dev/null && command -v latexmk >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing LaTeX (about half a minute)"; \
	  { $(APT) update && $(APT) install --no-install-recommends $(TEX_PACKAGES); } >/dev/null \
	  || echo "LaTeX could not be installed: everything but the PDF will be built"; \
	else \
	  echo "There is no LaTeX here: everything but the PDF will be built."; \
	  echo "Install it (Debian, Ubuntu): apt-get install $(TEX_PACKAGES)"; \
	fi

lock: ## Renew requirements.lock from pyproject.toml (all to the newest: UPGRADE=--upgrade)
	$(PYTHON) -m venv build/uv
	build/uv/bin/pip install --quiet uv
	build/uv/bin/uv pip compile pyproject.toml --quiet --no-config $$UPGRADE \
	  --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	  --all-extras --group build --group docs --group lint --group slurm --group test \
	  --custom-compile-command "make lock" --output-file requirements.lock

clean: ## Delete what the workflow makes (keeps data/raw and .venv)
	rm -rf results figures build dist docs/auto_gallery
	@echo "Kept: data/raw (downloads) and .venv (the environment)"

$(READY): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Python 3.11 or newer is needed; '$(PYTHON) --version' says: $$($(PYTHON) --version 2>&1 || true)" >&2; \
	    echo "Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@if [ -L $(VENV) ]; then echo "$(VENV) is a symbolic link: making it anew would empty what it points to. Remove the link." >&2; exit 1; fi
	@echo "Making $(VENV) from requirements.lock (about a minute)"
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --retries 5 --timeout 60 \
	  --require-hashes --requirement requirements.lock
	@touch $@

$(BUILT): $(READY) pyproject.toml setup.py $(KERNELS)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index --editable .
	@touch $@
