"""The judge: printed numbers and ours in, verdicts out. It reads no file but tables and YAML."""
