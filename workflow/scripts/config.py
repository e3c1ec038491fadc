"""Print the whole configuration as YAML, checked as the workflow checks it.

    python workflow/scripts/config.py scale=published seed=1

takes what `snakemake --config` takes.
"""

import sys
from importlib import import_module
from pathlib import Path

import yaml
from snakemake.cli import parse_config

sys.path.insert(0, "src")
from studies.common.configuration import read_config

try:
    given = parse_config(sys.argv[1:])
    config = read_config(given.get("scale"), given=given)
    for path in sorted(Path("src/studies").glob("*/config.py")):
        import_module(f"studies.{path.parent.name}.config").check(config)
except ValueError as error:
    sys.exit(str(error))
yaml.SafeDumper.ignore_aliases = lambda self, data: True  # equal parts are written out each time
print(yaml.safe_dump(config, sort_keys=False, width=120, default_flow_style=None), end="")
