# build: the executable of a release, downloaded and verified
from=${VODBOX_DOWNLOAD_URL:-@BASE_URL@}
# The key of the release: minisign's public key, empty when the release is not signed.
public_key="@PUBLIC_KEY@" checksum_only=0
option() {
  case "$1" in
    --from=?*) from=${1#--from=} ;;
    --checksum-only) checksum_only=1 ;;
    *) return 1 ;;
  esac
}
own_usage() {
  [ -z "$public_key" ] || echo "  --checksum-only  verify the checksum, but not the signature"
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
  [ -z "$public_key" ] || [ "$checksum_only" = 1 ] || command -v minisign >/dev/null || has_openssl ||
    fail "the signature cannot be checked: install minisign or OpenSSL 3. --checksum-only installs without that check."
  case "$(uname -m)" in
    x86_64 | amd64) name=vodbox-@VERSION@-linux-x64 ;;
    aarch64 | arm64) name=vodbox-@VERSION@-linux-arm64 ;;
    *) fail "there is no vodbox for $(uname -m); it is released for x86_64 and aarch64." ;;
  esac
}
# OpenSSL 3 verifies Ed25519 signatures of files.
has_openssl() {
  case "$(openssl version 2>/dev/null)" in "OpenSSL "[3-9]*) ;; *) return 1 ;; esac
}
# $1 has the signature $1.minisig: Ed25519 of the BLAKE2b hash. Its format: https://jedisct1.github.io/minisign/
verify() {
  if command -v minisign >/dev/null; then
    minisign -V -q -H -P "$public_key" -m "$1" -x "$1.minisig" >/dev/null 2>&1
    return
  fi
  sed -n 2p "$1.minisig" | openssl base64 -d -A >"$1.raw"
  { [ "$(wc -c <"$1.raw")" -eq 74 ] && [ "$(head -c 2 "$1.raw")" = ED ]; } || return 1
  tail -c 64 "$1.raw" >"$1.signature"
  # The key in the form of X.509 (RFC 8410).
  { printf '\060\052\060\005\006\003\053\145\160\003\041\000'; printf %s "$public_key" | openssl base64 -d -A | tail -c 32; } >"$1.key"
  openssl dgst -blake2b512 -binary "$1" >"$1.hash" &&
    openssl pkeyutl -verify -pubin -keyform DER -inkey "$1.key" -rawin -in "$1.hash" -sigfile "$1.signature" >/dev/null 2>&1
}
check_signature() {
  [ -n "$public_key" ] && [ "$checksum_only" = 0 ] || return 0
  download "${from%/}/SHA256SUMS.minisig" "$1.minisig"
  verify "$1" ||
    fail "the signature of SHA256SUMS is not that of key $public_key. Nothing was installed; use another source."
}
obtain() {
  sums=$1.sums
  trap 'rm -f "$new" "$sums" "$sums".*' EXIT
  download "${from%/}/SHA256SUMS" "$sums"
  check_signature "$sums"
  expected=$(awk -v name="$name" '$2 == name { print $1 }' "$sums")
  [ -n "$expected" ] || fail "${from%/}/SHA256SUMS does not list $name."
  echo "Downloading $name"
  download "${from%/}/$name" "$1"
  actual=$(sha256sum "$1" | cut -d ' ' -f 1)
  [ "$actual" = "$expected" ] ||
    fail "the checksum of $name is $actual, not $expected as in SHA256SUMS. Nothing was installed; try again, or use another source."
  rm -f "$sums" "$sums".*
}
unit() {
  cat <<'UNIT'
@UNIT@
UNIT
}
