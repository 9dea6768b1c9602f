#!/bin/sh
# Installs the npm packages of the lock file, unless they are: sh scripts/install-packages.sh [--for-build]
# With --for-build, a checkout without any only gets those that the build needs, a third of all.
set -eu
cd "$(dirname "$0")/.."
omit="" needed=node_modules/vitest
if [ "${1-}" = --for-build ] && [ ! -d $needed ]; then
  omit=--omit=dev needed=node_modules/esbuild
fi
# npm writes its hidden lock file last, so that one is newer than ours only after a complete installation.
if [ ! node_modules/.package-lock.json -nt package-lock.json ] || [ ! -d $needed ]; then
  echo "Installing npm packages"
  npm ci $omit --no-progress --loglevel=error
fi
