#!/usr/bin/env bash
# The library's tests under what finds mistakes that a test cannot see:
#   1. python -O, which drops every assertion of the library,
#   2. extensions with the address and the undefined-behaviour sanitiser, and with Cython's checks of bounds and of memory
#      views that were never set.
#   bash tests/sanitize.sh [arguments of pytest, for example -k orthant]
# Needs gcc with its sanitisers. Works on a copy: the built extensions stay as they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 # as tests/conftest.py says
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# what runs compiled code; the rest of the tests is the same with any build
tests=()
for name in chains control_variables gp hyperparameter_chains interface likelihood orthant orthant_methods rectangle \
    rectangle_parts rectangle_truncated truths; do
    tests+=("tests/gpcmc/test_$name.py")
done

mkdir -p "$work/src" "$work/tests"
cp pyproject.toml setup.py LICENSE "$work/"
cp -r src/gpcmc "$work/src/"
cp -r tests/gpcmc "$work/tests/"
cd "$work"
unset PYTHONPATH
# under sanitisers a test may take long: Hypothesis has no deadline in its profile `ci`
check=(python -m pytest --quiet --numprocesses=0 -p no:cacheprovider --hypothesis-profile=ci --durations=0 --durations-min=60)

echo "== python -O"
# pytest writes the assertions of tests anew, so that these stay, and warns that others do not
python -O "${check[@]:1}" -W "ignore:assertions not in test modules" -m "not slow" tests/gpcmc "$@"

echo "== sanitisers"
find src -name '*.so' -delete
sed -i '1s/boundscheck=False/boundscheck=True/; 1s/initializedcheck=False/initializedcheck=True/' $(find src -name '*.pyx')
# what is undefined stops the run, as a bad address does
CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g" CC=gcc \
    python setup.py --quiet build_ext --inplace >build.log 2>&1 || { cat build.log >&2; exit 1; }
# the interpreter never frees all; pytest catches what is written to stderr, and a finding ends the process
export ASAN_OPTIONS=detect_leaks=0:log_path=$work/finding
export UBSAN_OPTIONS=print_stacktrace=1:log_path=$work/finding
export PYTHONMALLOC=malloc # one allocation, one guarded block
# the address sanitiser itself reserves more than that test's limit of the address space
limited=tests/gpcmc/test_interface.py::test_the_limit_of_the_address_space_counts
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)" \
    "${check[@]}" -m "not slow" --deselect "$limited" "${tests[@]}" "$@" || { cat "$work"/finding* >&2; exit 1; }
