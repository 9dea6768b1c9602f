#!/bin/sh
# Boots systemd in namespaces of its own, over a copy-on-write view of this machine, in which FOLDER is visible under the same
# path. With EXECUTABLE, vodbox.service is installed and started.
# usage: unshare --mount --pid --fork --kill-child --cgroup --uts --ipc sh systemd.sh FOLDER [EXECUTABLE UNIT PORT]
set -eu
# The directory of pivot_root is not on the PATH of every environment.
PATH=$PATH:/usr/sbin
folder=$1
root=$folder/root
mkdir "$root" "$folder/layers"
mount -t tmpfs none "$folder/layers"
mkdir "$folder/layers/upper" "$folder/layers/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/layers/upper,workdir=$folder/layers/work" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs none "$root/run"
mount -t tmpfs none "$root/tmp"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
mkdir "$root/sys/fs/cgroup/systemd"
mount -t cgroup -o none,name=systemd none "$root/sys/fs/cgroup/systemd"
mount --bind /dev "$root/dev"
mkdir -p "$root$folder"
mount --bind "$folder" "$root$folder"
printf '[Unit]\nDescription=test\n' >"$root/etc/systemd/system/test.target"
if [ $# -gt 1 ]; then
  executable=$2 unit=$3 port=$4
  mkdir -p "$root/usr/local/bin" "$root/var/lib/vodbox" "$root/var/cache/vodbox"
  cp "$executable" "$root/usr/local/bin/vodbox"
  chmod 755 "$root/usr/local/bin/vodbox"
  sed 's|@PREFIX@|/usr/local|' "$unit" >"$root/etc/systemd/system/vodbox.service"
  echo 'vodbox:x:990:990::/var/lib/vodbox:/usr/sbin/nologin' >>"$root/etc/passwd"
  echo 'vodbox:x:990:' >>"$root/etc/group"
  printf 'VODBOX_PORT=%s\nVODBOX_ADMIN_TOKEN=boot-test-token-of-32-characters\n' "$port" >"$root/etc/vodbox.env"
  printf '[Unit]\nWants=vodbox.service\n' >"$root/etc/systemd/system/test.target"
fi
# Not chroot: the kernel refuses user namespaces to a process below a changed root.
cd "$root"
mkdir -p oldroot
pivot_root . oldroot
umount -l /oldroot
exec env -i container=other PATH=/usr/bin:/bin:/usr/sbin:/sbin \
  /lib/systemd/systemd --system --unit=test.target --log-target=null --show-status=0
