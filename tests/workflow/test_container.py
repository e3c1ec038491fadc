"""The recipe of the image: what it installs, and its steps in an empty root.

`make test-container` runs the second test, which needs root, debootstrap, the internet and some ten minutes.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from recheck.paper.typeset import LATEX_PACKAGES

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ROOT / "container/install.sh"
RECIPE = ROOT / "container/gpcmc.def"
#: Folders and files of this machine that its way to packages needs, such as a mirror. Folders are mounted read-only and
#: files are copied: what is installed there writes into /etc, and must not reach that of this machine.
SHOWN = os.environ.get("CONTAINER_SHOWS", "/etc/resolv.conf").split()
STEPS = """
set -eu
root=$1
shift
debootstrap --variant=minbase bookworm "$root" http://deb.debian.org/debian
mkdir -p "$root/opt/gpcmc" "$root/proc" "$root/usr/local/share/ca-certificates"
cp requirements.lock container/install.sh "$root/opt/gpcmc/"
# from these its own ca-certificates makes its own bundle
find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$root/usr/local/share/ca-certificates/" ';'
for path in "$@"; do
    mkdir -p "$root$(dirname "$path")"
    if [ -d "$path" ]; then
        mkdir -p "$root$path"
        mount --bind "$path" "$root$path"
        mount -o remount,bind,ro "$root$path"
    else
        cp -L "$path" "$root$path"
    fi
done
mount -t proc proc "$root/proc"
chroot "$root" sh /opt/gpcmc/install.sh
chroot "$root" /opt/gpcmc/venv/bin/python -c "import arviz_stats, matplotlib, snakemake"
chroot "$root" pdflatex --version
"""


def test_it_installs_the_lock_and_the_latex_of_the_makefile():
    text = INSTALL.read_text(encoding="utf-8").replace("\\\n", " ")
    (packages,) = re.findall(r"(?m)^TEX_PACKAGES := (.*)$", (ROOT / "Makefile").read_text())
    (apt,) = re.findall(r"apt-get .* install (.*)", text)
    assert set(packages.split()) <= set(apt.split())
    assert set(packages.split()) == set(LATEX_PACKAGES.split())
    assert "--require-hashes" in text and "requirements.lock" in text
    files = RECIPE.read_text(encoding="utf-8").split("%files")[1].split("%post")[0]
    for source, target in re.findall(r"(?m)^    (\S+) (/opt/gpcmc/\S+)$", files):
        assert (ROOT / source).exists() and Path(target).name == Path(source).name


def test_the_workflow_runs_in_the_image_that_the_recipe_says_how_to_build():
    (image,) = re.findall(r'(?m)^container: "(.*)"$', (ROOT / "Snakefile").read_text())
    assert f"apptainer build {image} {RECIPE.relative_to(ROOT)}" in RECIPE.read_text()


def test_its_steps_can_write_nothing_of_this_machine():
    for line in STEPS.splitlines():
        if "mount --bind" in line:
            assert 'mount -o remount,bind,ro "$root$path"' in STEPS.split(line)[1].splitlines()[1]
    assert not any(Path(path).is_dir() and path.startswith("/etc") for path in SHOWN)


@pytest.mark.skipif("TEST_CONTAINER" not in os.environ, reason="`make test-container` runs it")
def test_its_steps_make_the_environment_in_an_empty_root(tmp_path):
    # what is mounted there goes away with the process
    command = ["unshare", "--mount", "sh", "-c", STEPS, "sh", str(tmp_path / "root"), *SHOWN]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "pdfTeX" in done.stdout
