#!/bin/sh
# Installs the npm packages of the lock file, unless they are. npm writes its hidden lock file last, so that one is newer
# than ours only after a complete installation.
set -eu
cd "$(dirname "$0")/.."
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  echo "Installing npm packages"
  npm ci --no-progress --loglevel=error
fi
