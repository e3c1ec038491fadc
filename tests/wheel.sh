#!/usr/bin/env bash
# Build a wheel for each Python that is there, install it into an empty environment, and run the library's tests on it.
#   bash tests/wheel.sh python3.11 python3.12 python3.13
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 # as tests/conftest.py says
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sdist=$(ls -t dist/gpcmc-*.tar.gz | head -1)
tested=0
failed=

# A Python by its name, or the newest of that name that pyenv has, whose shims work for the selected version alone.
find_python() {
    local test='import sys, venv; sys.exit(sys.version_info < (3, 11))' other
    for other in "$1" "$(pyenv root 2>/dev/null)"/versions/"${1#python}".*/bin/python; do
        if "$other" -c "$test" >/dev/null 2>&1; then
            echo "$other"
        fi
    done | tail -1
}

for name in "$@"; do
    python=$(find_python "$name")
    if [[ -z $python ]]; then
        echo "skipped: $name is not here, or older than 3.11"
        continue
    fi
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$python" -m venv "$work/build$version" && "$python" -m venv "$work/empty$version"
    # as a user would: from the source distribution, in isolation
    "$work/build$version/bin/pip" wheel --quiet --no-deps --wheel-dir "$work/wheel$version" "$sdist"
    bin=$work/empty$version/bin
    "$bin/pip" install --quiet "$work/wheel$version"/*.whl
    # its own dependencies are enough to use it
    (cd "$work" && "$bin/python" -c '
import time
begin = time.perf_counter()
import gpcmc
seconds = time.perf_counter() - begin
assert seconds < 0.3, f"import gpcmc took {seconds:.2f} s"
assert "site-packages" in gpcmc.__file__, gpcmc.__file__
from sklearn.datasets import make_moons
X, y = make_moons(40, noise=0.3, random_state=0)
for name in ("ep", "laplace", "twisted-ep"):
    gpcmc.GaussianProcessClassifier(inference=name, random_state=0).fit(X, y).predict_proba(X)
print(f"import gpcmc: {seconds * 1000:.0f} ms")')
    "$bin/pip" install --quiet hypothesis mpmath pytest pyyaml
    # a copy of the tests: beside src, pytest would import the sources
    mkdir "$work/tests$version"
    cp -r "$here"/tests/{conftest.py,gpcmc,slow.txt} "$work/tests$version/"
    echo "== the library's tests on Python $version"
    (cd "$work/tests$version" && "$bin/python" -m pytest --quiet -W error -p no:cacheprovider \
        --override-ini 'markers=slow: takes more than a tenth of a second' ${PYTEST:-} gpcmc) || failed+=" $version"
    tested=$((tested + 1))
done
[[ $tested -gt 0 ]] || { echo "none of $* is here" >&2; exit 1; }
[[ -z $failed ]] || { echo "failed on Python$failed" >&2; exit 1; }
