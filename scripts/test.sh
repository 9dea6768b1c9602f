#!/bin/sh
# npm test: brings what the tests need where it is missing, builds, checks. Works on a fresh checkout, where npm's PATH
# has whatever Node the machine has; the one that everything runs under comes with the packages.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
export PATH

# npm writes the hidden lock file last, so it is newer than ours only after a complete install of it.
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  echo "Installing npm packages"
  npm ci --no-progress --loglevel=error
fi

# What stands in for the world outside: another ffmpeg to make and judge media with, a browser, a translation service
# with a pair of languages, a voice and a recogniser of speech (25 MB with its model), an S3 server that checks signatures
# and a client of it, players, a proxy, systemd's tools, and what the documents' examples are typed with.
missing=""
command -v ffmpeg >/dev/null || missing="$missing ffmpeg"
command -v chromium >/dev/null || missing="$missing chromium"
command -v curl >/dev/null || missing="$missing curl"
command -v jq >/dev/null || missing="$missing jq"
command -v apertium-apy >/dev/null || missing="$missing apertium-apy"
[ -e /usr/share/apertium/modes/eng-spa.mode ] || missing="$missing apertium-eng-spa"
command -v espeak-ng >/dev/null || missing="$missing espeak-ng"
command -v pocketsphinx_continuous >/dev/null || missing="$missing pocketsphinx"
[ -e /usr/share/pocketsphinx/model/en-us ] || missing="$missing pocketsphinx-en-us"
command -v ceph >/dev/null || missing="$missing ceph-common"
command -v ceph-mon >/dev/null || missing="$missing ceph-mon"
command -v ceph-osd >/dev/null || missing="$missing ceph-osd"
command -v radosgw >/dev/null || missing="$missing radosgw"
command -v python3 >/dev/null || missing="$missing python3"
command -v systemd-notify >/dev/null || missing="$missing systemd"
command -v bwrap >/dev/null || missing="$missing bubblewrap"
command -v aws >/dev/null || missing="$missing awscli"
command -v mpv >/dev/null || missing="$missing mpv"
command -v streamlink >/dev/null || missing="$missing streamlink"
command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || missing="$missing nginx-light"
command -v vlc >/dev/null || missing="$missing vlc-bin"
[ -n "$(find /usr/lib -name libadaptive_plugin.so -print -quit)" ] || missing="$missing vlc-plugin-base"
if [ -n "$missing" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    install="apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300"
    # shellcheck disable=SC2086 # lists of words
    $install $missing >/dev/null 2>&1 || { apt-get update -qq && $install $missing >/dev/null; }
  else
    echo "These programs are missing, and tests that need them will fail; install:$missing" >&2
  fi
fi

npm run --silent build
npm run --silent client
npm run --silent lint
npm run --silent typecheck
exec vitest run "$@"
