#!/bin/sh
# Builds vodbox from this checkout and installs it. Safe to run again: it replaces what it installed before.
# scripts/release/installer.ts derives the installer of a release from this file: it replaces the parts between "build:"
# and "end of build".
set -eu

usage() {
  cat <<'TEXT'
usage: ./install.sh [--prefix DIR] [--demo] [--service]
  --prefix DIR  install DIR/bin/vodbox; otherwise /usr/local for root, else ~/.local
  --demo        then run `vodbox demo`: a server, a clip, its upload and the URL of its watch page
  --service     also install and start a systemd unit (as root)
TEXT
  own_usage
}
fail() {
  echo "install.sh: $1" >&2
  exit 1
}

# build: the executable from the sources, and the unit
complete=""
own_usage() {
  echo "  --complete    with an ffmpeg that encodes AV1 too, which takes about ten minutes to compile, once"
}
option() {
  [ "$1" = --complete ] && complete=--complete
}
check() {
  cd "$(dirname "$0")"
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    fail "the build needs Node.js 20 or later with npm; install it from https://nodejs.org or your distribution."
  fi
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
    fail "the build needs Node.js 20 or later; this is $(node --version)."
}
obtain() {
  began=$(date +%s) steps=$((2 + demo))
  echo "Step 1 of $steps: npm packages (about 30 s)"
  npm ci --no-progress --loglevel=error
  echo "Step 2 of $steps: the executable (about 45 s, or 15 s from the cache of this machine; $(($(date +%s) - began)) s so far)"
  npm run --silent build -- $complete
  cp dist/vodbox "$1"
}
before_demo() {
  echo "Step 3 of 3: a server, a clip and its upload (about 10 s; $(($(date +%s) - began)) s so far)"
}
unit() {
  cat scripts/vodbox.service
}
# end of build

# A function, so that a download that is cut off does nothing.
main() {
  prefix="" demo=0 service=0
  while [ $# -gt 0 ]; do
    case "$1" in
      --prefix) [ $# -ge 2 ] || { usage >&2; exit 2; }; prefix=$2; shift ;;
      --prefix=?*) prefix=${1#--prefix=} ;;
      --demo) demo=1 ;;
      --service) service=1 ;;
      -h | --help) usage; exit 0 ;;
      *) option "$1" || { echo "install.sh: unknown argument: $1" >&2; usage >&2; exit 2; } ;;
    esac
    shift
  done

  if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?HOME is not set; use --prefix}/.local; fi
  fi
  case "$prefix" in /*) ;; *) prefix=$PWD/$prefix ;; esac

  # Reported before the minutes that a build takes, not after.
  if [ "$service" = 1 ]; then
    [ -d /run/systemd/system ] || fail "--service needs systemd, which is not running here."
    [ "$(id -u)" = 0 ] || fail "--service needs root: run it with sudo."
    case "$prefix" in
      /home/* | /root/*) fail "--service cannot run a program under $prefix: its unit hides home directories. Use another --prefix." ;;
    esac
  fi
  [ "$(uname -s)" = Linux ] || fail "vodbox is built for Linux only."
  check

  # Written next to the result and then renamed: a running vodbox keeps its file, and no file is ever incomplete.
  mkdir -p "$prefix/bin"
  new=$prefix/bin/.vodbox.$$
  trap 'rm -f "$new"' EXIT
  obtain "$new"
  chmod 755 "$new"
  mv -f "$new" "$prefix/bin/vodbox"
  echo "Installed $prefix/bin/vodbox"
  case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) echo "$prefix/bin is not on your PATH; add it, or call $prefix/bin/vodbox." ;;
  esac

  if [ "$service" = 1 ]; then start_service; fi

  # The last step, in place of this shell: Ctrl-C reaches only the demo.
  if [ "$demo" = 1 ]; then
    trap - EXIT
    before_demo
    exec "$prefix/bin/vodbox" demo
  fi
}

start_service() {
  id vodbox >/dev/null 2>&1 ||
    useradd --system --user-group --home-dir /var/lib/vodbox --no-create-home --shell /usr/sbin/nologin vodbox
  # The prefix is inserted as text: its quotes and % must have no meaning to systemd, nor its & and | to sed.
  escaped=$(printf '%s' "$prefix" | sed 's/["\\]/\\&/g; s/%/%%/g' | sed 's/[&|\\]/\\&/g')
  unit | sed "s|@PREFIX@|$escaped|g" >/etc/systemd/system/vodbox.service
  systemctl daemon-reload
  systemctl enable --quiet vodbox
  # It returns once vodbox is ready; a long migration, or storage that does not respond, must not block this script.
  timeout 60 systemctl restart vodbox ||
    fail "vodbox.service is not ready. See what it waits for: systemctl status vodbox; journalctl -u vodbox"
  echo "Started vodbox.service; settings are in /etc/vodbox.env, its log is shown by: journalctl -u vodbox"
}

main "$@"
