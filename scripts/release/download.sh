# build: the executable of a release, downloaded and verified
from=${VODBOX_DOWNLOAD_URL:-@BASE_URL@}
option() {
  case "$1" in
    --from=?*) from=${1#--from=} ;;
    *) return 1 ;;
  esac
}
own_usage() {
  :
}
before_demo() {
  :
}
download() {
  if command -v curl >/dev/null; then
    curl -fsSL --retry 2 -o "$2" "$1"
  else
    wget -q -O "$2" "$1"
  fi || fail "$1 could not be downloaded."
}
check() {
  [ -n "$from" ] || fail "this release has no download URL; set one with --from=URL or VODBOX_DOWNLOAD_URL."
  command -v curl >/dev/null || command -v wget >/dev/null || fail "curl or wget is needed; install one of them."
  case "$(uname -m)" in
    x86_64 | amd64) name=vodbox-@VERSION@-linux-x64 ;;
    aarch64 | arm64) name=vodbox-@VERSION@-linux-arm64 ;;
    *) fail "there is no vodbox for $(uname -m); it is released for x86_64 and aarch64." ;;
  esac
}
obtain() {
  sums=$1.sums
  trap 'rm -f "$new" "$sums"' EXIT
  download "${from%/}/SHA256SUMS" "$sums"
  expected=$(awk -v name="$name" '$2 == name { print $1 }' "$sums")
  [ -n "$expected" ] || fail "${from%/}/SHA256SUMS does not list $name."
  echo "Downloading $name"
  download "${from%/}/$name" "$1"
  actual=$(sha256sum "$1" | cut -d ' ' -f 1)
  [ "$actual" = "$expected" ] ||
    fail "the checksum of $name is $actual, not $expected as in SHA256SUMS. Nothing was installed; try again, or use another source."
  rm -f "$sums"
}
unit() {
  cat <<'UNIT'
@UNIT@
UNIT
}
