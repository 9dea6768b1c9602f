#!/bin/sh
# Runs a command of an unpacked image as a container engine does with --read-only: namespaces of its own, a read-only
# root, the image's user without capabilities, and two volumes.
# usage: unshare --mount --pid --fork --kill-child --ipc --uts sh container.sh ROOT USER VOLUMES COMMAND…
# The environment, and nothing else, comes from the caller. The volumes are VOLUMES/data and VOLUMES/cache.
set -eu
root=$1 user=$2 volumes=$3
shift 3
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind "$volumes/data" "$root/var/lib/vodbox"
mount --bind "$volumes/cache" "$root/var/cache/vodbox"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 dev "$root/dev"
for name in null zero random urandom; do
  touch "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
mount -o remount,ro "$root/dev"
exec chroot --userspec="$user" "$root" "$@"
