#!/bin/sh
# Runs COMMAND in a copy-on-write view of this machine that ends with it.
# usage: unshare --mount --pid --fork --kill-child sh throw-away-root.sh FOLDER COMMAND…
# FOLDER is visible under the same path.
set -eu
folder=$1
shift
root=$folder/root
mkdir "$root" "$folder/layers"
mount -t tmpfs none "$folder/layers"
mkdir "$folder/layers/upper" "$folder/layers/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/layers/upper,workdir=$folder/layers/work" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs none "$root/run"
mount --bind /dev "$root/dev"
mkdir -p "$root$folder"
mount --bind "$folder" "$root$folder"
exec chroot "$root" "$@"
