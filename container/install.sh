#!/bin/sh
# Make the environment in an empty Debian: needs root, the internet, and requirements.lock beside this file.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

apt-get -qq update
# the interpreter, what builds the extensions, and what make latex installs
apt-get -qq -y install --no-install-recommends ca-certificates python3 python3-dev python3-venv gcc libc6-dev make git \
  latexmk lmodern texlive-fonts-recommended texlive-latex-base texlive-latex-extra texlive-latex-recommended >/dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb

python3 -m venv --clear "$here/venv"
"$here/venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --retries 5 --timeout 60 \
  --require-hashes --requirement "$here/requirements.lock"
