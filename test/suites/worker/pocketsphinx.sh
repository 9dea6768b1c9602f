#!/bin/sh
# As VODBOX_TRANSCRIBE_COMMAND: a WAV and a language in, SubRip out. pocketsphinx prints for each utterance its text and
# then, word by word, when it was heard and how sure it is.
set -eu
case "$2" in en | en-*) ;; *) echo "no model for $2" >&2 && exit 3 ;; esac
pocketsphinx_continuous -infile "$1" -time yes -logfn /dev/null | awk '
function stamp(s) { return sprintf("%02d:%02d:%02d,%03d", s / 3600, s % 3600 / 60, s % 60, (s - int(s)) * 1000) }
function flush() { if (text != "") printf "%d\n%s --> %s\n%s\n\n", ++count, stamp(from), stamp(to), text; text = "" }
NF == 4 && $2 ~ /^[0-9.]+$/ && $3 ~ /^[0-9.]+$/ {
  if ($1 ~ /^[<[]/) next
  if (text != "" && ($2 - to > 0.8 || length(text) > 40)) flush()
  sub(/\([0-9]+\)$/, "", $1)
  if (text == "") from = $2
  to = $3
  text = text (text == "" ? "" : " ") $1
  next
}
{ flush() }
END { flush() }'
