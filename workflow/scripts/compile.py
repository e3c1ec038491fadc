"""Build the Cython extensions in place, beside their sources in src."""

import shutil
import subprocess
import sys
from importlib import import_module

from begin import begin
from recheck.record.files import sha256, write_json

begin(snakemake)
command = [sys.executable, "setup.py", "build_ext", "--inplace"]
try:
    subprocess.run(command, check=True, stdout=sys.stderr, stderr=sys.stderr)
except subprocess.CalledProcessError:
    # Cython takes a file that a full disk cut short for a finished one, because it is newer than its source
    shutil.rmtree("build/cython", ignore_errors=True)
    raise
sources = {path: sha256(path) for path in snakemake.input.sources}
write_json(snakemake.output[0], {"python": sys.version, "sources": sources})

# The options of methods are checked against their classes, which import the extensions. Where these were not built yet,
# the check waited for them.
for study in snakemake.params.studies:
    import_module(f"studies.{study}.config").check(snakemake.config)
