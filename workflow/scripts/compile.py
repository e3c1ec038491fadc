"""Build the Cython extensions in place, beside their sources in src."""

import subprocess
import sys

from begin import begin

begin(snakemake)

from recheck.files import sha256, write_json

command = [sys.executable, "setup.py", "build_ext", "--inplace"]
subprocess.run(command, check=True, stdout=sys.stderr, stderr=sys.stderr)
sources = {path: sha256(path) for path in snakemake.input.sources}
write_json(snakemake.output[0], {"python": sys.version, "sources": sources})
