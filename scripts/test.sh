#!/bin/sh
# The tests of one tier (test/tiers.ts): sh scripts/test.sh fast|full|nightly|watch [--shard=I/N | arguments of Vitest]
#   fast     npm test: lint, types, and test/unit and test/api
#   full     npm run test:full: the same, test/suites, and a part of test/api over a remote database
#   nightly  npm run test:nightly: the same with many rounds, and test/nightly
#   watch    npm run test:watch: the files of the fast tier that uncommitted changes affect, again after each change
# With arguments, such as a file or the name of a feature, it only runs Vitest, over the matching files of fast and full:
# it lints and installs nothing, and builds only what is missing or older than its sources.
#
# It works on a fresh checkout, where npm's PATH has any Node.js: the one that everything runs under is an npm package.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
export PATH
tier="$1"
shift

sh scripts/install-packages.sh

# Prints the Debian package $1 unless the command $2 exists.
package() {
  command -v "$2" >/dev/null || echo "$1"
}

# The system's ffmpeg creates and checks media, independently of the one in the executable.
packages_of_fast() {
  package ffmpeg ffmpeg
  package chromium chromium
  package curl curl
  package bubblewrap bwrap
}

# A translation service with a pair of languages, a voice and speech recognition (25 MB with its model), an S3 server
# that checks signatures and a client of it, players, a proxy, systemd's tools, what releases are signed and
# installed with, and commands in the examples of docs.
packages_of_full() {
  packages_of_fast
  package jq jq
  package openssl openssl
  package apertium-apy apertium-apy
  [ -e /usr/share/apertium/modes/eng-spa.mode ] || echo apertium-eng-spa
  package espeak-ng espeak-ng
  package pocketsphinx pocketsphinx_continuous
  [ -e /usr/share/pocketsphinx/model/en-us ] || echo pocketsphinx-en-us
  package ceph-common ceph
  package ceph-mon ceph-mon
  package ceph-osd ceph-osd
  package radosgw radosgw
  package python3 python3
  [ -x /usr/bin/mypy ] || echo mypy
  # Of Debian's Python, which is not always the first on PATH.
  for module in httpx jwt cryptography pip ensurepip:venv setuptools wheel; do
    /usr/bin/python3 -c "import ${module%:*}" 2>/dev/null || echo "python3-${module#*:}"
  done
  package php-cli php
  php -m 2>/dev/null | grep -qx curl || echo php-curl
  package redis-server redis-server
  package qemu-user-static qemu-aarch64-static
  package skopeo skopeo
  package minisign minisign
  package gnupg gpg
  package ruby ruby
  package ansible-core ansible-playbook
  # It checks what Terraform renders, which Debian does not package.
  ! command -v terraform >/dev/null || package cloud-init cloud-init
  [ -e /usr/share/doc/python3-apt ] || echo python3-apt
  package prometheus promtool
  package systemd systemd-notify
  package awscli aws
  package mpv mpv
  package streamlink streamlink
  package zsh zsh
  package fish fish
  [ -x /usr/sbin/nginx ] || package nginx-light nginx
  package vlc-bin vlc
  [ -n "$(find /usr/lib -name libadaptive_plugin.so -print -quit)" ] || echo vlc-plugin-base
}

# What the guard of the benchmarks loads the server with, a compiler of the Go client, what installs the PHP client, and
# WordPress.
packages_of_nightly() {
  packages_of_full
  package wrk wrk
  package golang-go go
  package composer composer
  php -m 2>/dev/null | grep -qx zip || echo php-zip
  php -m 2>/dev/null | grep -qx mysqli || echo php-mysql
  package mariadb-server mariadbd
  [ -d /usr/share/wordpress ] || echo wordpress
  [ -d /usr/share/wordpress/wp-content/themes/twentytwentythree ] || echo wordpress-theme-twentytwentythree
}

# The browser tests need a third less processor time with it, and run without it.
install_headless_shell() {
  ! command -v chromium-headless-shell >/dev/null && [ "$(id -u)" = 0 ] || return 0
  install_packages chromium-headless-shell || echo "Browser tests use chromium: chromium-headless-shell was not installed."
}

install_packages() {
  missing="$(echo $1)"
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing $missing"
    export DEBIAN_FRONTEND=noninteractive
    install="apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300"
    # shellcheck disable=SC2086 # lists of words
    $install $missing >/dev/null 2>&1 || { apt-get update -qq && $install $missing >/dev/null; }
  else
    echo "These programs are missing, and tests that need them will fail; install: $missing" >&2
  fi
}

newer_than() {
  [ ! -e "$1" ] || [ -n "$(find src storage scripts/build package-lock.json -newer "$1" -print -quit)" ]
}

# Runs the command $@ with its temporary files in memory, where root has 12 GiB: tests wait for the disk a third of their time
# otherwise. The mount ends with the command, however that ends, because no other process sees it.
in_memory() {
  gigabytes=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
  folder=$(mktemp -d)
  if [ "$(id -u)" = 0 ] && [ "$gigabytes" -ge 12 ] && unshare --mount true 2>/dev/null; then
    # shellcheck disable=SC2016 # the inner shell's variables
    set -- unshare --mount sh -c \
      'mount -t tmpfs -o size=50% vodbox-tests "$0" || exec "$@"; export TMPDIR="$0"; exec "$@"' "$folder" "$@"
  fi
  status=0
  "$@" || status=$?
  rmdir "$folder"
  return $status
}

# With the compiled code of a release, because tests start hundreds of processes. Nothing is compiled in the background,
# because it would disturb the tests that measure.
build() {
  npm run --silent build -- --for-tests --no-background "$@"
}

# Tests run the sources when these are newer than the executable, except those of the executable itself.
build_what_is_needed() {
  needs_executable=""
  for argument; do
    [ -f "$argument" ] || continue
    ! grep -q 'executable: true\|EXECUTABLE\|dist/vodbox' "$argument" || needs_executable=1
  done
  if [ ! -e dist/vodbox ] || { [ -n "$needs_executable" ] && newer_than dist/vodbox; }; then
    build
  elif newer_than build/assets/console/files.json; then
    npm run --silent build:assets
  fi
}

if [ "$tier" = watch ]; then
  build_what_is_needed
  exec vitest watch --changed --project "fast*" "$@"
fi

# One of several machines that share a tier is like the whole tier.
shard=""
case "${1-}" in --shard=*) shard=$1; shift ;; esac

# scripts/test/run.ts runs a file that failed once more.
if [ $# -gt 0 ]; then
  build_what_is_needed "$@"
  in_memory node scripts/test/run.ts --project "fast*" --project "full*" "$@"
  exit
fi

case "$tier" in
  fast) packages=$(packages_of_fast) projects="fast*" ;;
  full) packages=$(packages_of_full) projects="fast* full* remote*" ;;
  nightly) packages=$(packages_of_nightly) projects="fast* full* nightly* remote*" ;;
esac
install_packages "$packages"
install_headless_shell
# AV1 is encoded by the system's ffmpeg in the full tier: compiling the encoder takes minutes.
case "$tier" in
  nightly) build --complete ;;
  *) build ;;
esac
case "$shard" in
  "" | --shard=1/*)
    npm run --silent lint
    npm run --silent typecheck
    ;;
esac
set -- ${shard:+"$shard"}
set -f
for project in $projects; do set -- "$@" --project "$project"; done
export VODBOX_TEST_TIER="$tier"
in_memory node scripts/test/run.ts "$@"
# After the tests, because it measures.
case "$tier$shard" in nightly | nightly--shard=1/*) npm run --silent bench guard ;; esac
