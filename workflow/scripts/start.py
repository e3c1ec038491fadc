"""Start Snakemake with what was given to make, none of which passes through a shell.

    python workflow/scripts/start.py all --cores all

takes the variables SCALE, CONFIG (``key=value`` words, quoted as in a shell), SNAKEMAKE (further arguments), and ID,
SECONDS, SHARE and DRAW (keys of single targets) from the environment. A target of kept results is of the published
scale if none is given.
"""

import os
import shlex
import sys

#: Targets of kept results.
KEPT = {"keep", "resume", "renew", "verify", "number"}
#: Keys of the targets that have some.
KEYS = {"verify": ("SHARE", "DRAW"), "number": ("ID", "SECONDS")}


def words(name, text):
    """The words of a text, quoted as in a shell."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise SystemExit(f"{name}: {error}; given {name}={text}") from None


def command(arguments, given):
    """The arguments of Snakemake for a target, from what was given to make."""
    target = arguments[0]
    further, config = (words(name, given.get(name, "")) for name in ("SNAKEMAKE", "CONFIG"))
    # Snakemake heeds the last --config alone, and what make prints at the end is of the scale that it knows
    if any(one.startswith("--config") or one[:2] == "-C" for one in further) or any(
        one.startswith("scale=") for one in config
    ):
        raise SystemExit(
            'SCALE=<scale> sets the scale, CONFIG="<key>=<value> ..." all other keys; '
            f'given SNAKEMAKE="{given.get("SNAKEMAKE", "")}" CONFIG="{given.get("CONFIG", "")}"'
        )
    scale = given.get("SCALE") or ("published" if target in KEPT else "")
    keys = [f"scale={scale}"] if scale else []
    for name in KEYS.get(target, ()):
        if value := given.get(name):
            # texts, whatever they look like: 1e5 and true are no ids
            keys.append(f"{name.lower()}={value}")
    settings = [*keys, *config]
    return [*arguments, *further, *(["--config", *settings] if settings else [])]


if __name__ == "__main__":
    snakemake = [sys.executable, "-m", "snakemake", *command(sys.argv[1:], os.environ)]
    os.execv(sys.executable, snakemake)
