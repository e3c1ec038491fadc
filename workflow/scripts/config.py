"""Print the whole configuration as YAML, checked as the workflow checks it.

    SCALE=published CONFIG="seed=1" python workflow/scripts/config.py

as `make config` does.
"""

import os
import shlex
import sys

import yaml
from snakemake.cli import parse_config

sys.path.insert(0, "src")
from studies.common.configuration import read_config
from studies.common.plan import Plan

try:
    given = parse_config(shlex.split(os.environ.get("CONFIG", "")))
    given |= {"scale": os.environ["SCALE"]} if os.environ.get("SCALE") else {}
    config = read_config(given.get("scale"), given=given)
    Plan(config)
except ValueError as error:
    sys.exit(str(error))
yaml.SafeDumper.ignore_aliases = lambda self, data: True  # equal parts are written out each time
print(yaml.safe_dump(config, sort_keys=False, width=120, default_flow_style=None), end="")
