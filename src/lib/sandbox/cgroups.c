/*
 * Control groups (cgroups(7)) of one run, for what resource limits do not count: the sum of all processes of a script, shared
 * memory, files in a tmpfs, and memory of the kernel. The caller names folders to create, one for each hierarchy: a single
 * one of version 2, or those of the controllers memory and pids of version 1. Only the program is in them. Where one cannot be
 * used, the run continues without it: the other limits of the launcher remain.
 */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define NR_CLONE3 435
/* Linux 5.7. */
#define CLONE_INTO_CGROUP 0x200000000ULL
/* A group may have more threads than the program, so that the supervisor sees that there are too many, and ends the run. */
#define MORE_THREADS 64
/* A killed process leaves its group within a moment. */
#define ROUNDS 200

/* `join`: where a process writes 0 to enter. */
struct cgroup { int parent, folder, join, is_unified; char name[NAME_MAX + 1]; };
static struct cgroup cgroups[MAX_CGROUPS];
static int cgroup_count;

static int write_text(const struct cgroup *cgroup, const char *name, const char *text) {
  int file = openat(cgroup->folder, name, O_WRONLY | O_CLOEXEC);
  if (file < 0) return -1;
  ssize_t written = write(file, text, strlen(text));
  close(file);
  return written < 0 ? -1 : 0;
}

static void write_number(const struct cgroup *cgroup, const char *name, unsigned long long value) {
  char text[32];
  snprintf(text, sizeof text, "%llu", value);
  write_text(cgroup, name, text);
}

static void moment(void) { nanosleep(&(struct timespec){0, 1000000}, NULL); }

void create_cgroup(const char *path, unsigned long long memory, unsigned long long threads) {
  struct cgroup *cgroup = &cgroups[cgroup_count];
  const char *name = strrchr(path, '/');
  char parent[PATH_MAX];
  if (cgroup_count == MAX_CGROUPS || !name || strlen(name + 1) >= sizeof cgroup->name) return;
  if ((size_t)snprintf(parent, sizeof parent, "%.*s", (int)(name - path), path) >= sizeof parent) return;
  strcpy(cgroup->name, name + 1);
  cgroup->parent = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (cgroup->parent < 0 || mkdirat(cgroup->parent, cgroup->name, 0755) != 0) return;
  /* Before anything can fail: what was created is removed. */
  cgroup_count++;
  cgroup->folder = openat(cgroup->parent, cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  /* Version 1 has this file, through which one thread enters without waiting for a grace period of RCU. */
  cgroup->join = openat(cgroup->folder, "tasks", O_WRONLY | O_CLOEXEC);
  cgroup->is_unified = cgroup->join < 0;
  if (cgroup->is_unified) cgroup->join = openat(cgroup->folder, "cgroup.procs", O_WRONLY | O_CLOEXEC);
  /* Files of controllers that the group does not have are missing. */
  if (memory > 0) {
    write_number(cgroup, "memory.max", memory);
    write_text(cgroup, "memory.swap.max", "0");
    write_number(cgroup, "memory.limit_in_bytes", memory);
    write_number(cgroup, "memory.memsw.limit_in_bytes", memory);
  }
  write_number(cgroup, "pids.max", threads + MORE_THREADS);
}

/* A process that enters by itself waits for a grace period of RCU with version 2; one that is born there does not. */
static pid_t born_inside(void) {
  for (int i = 0; i < cgroup_count; i++) {
    if (!cgroups[i].is_unified || cgroups[i].folder < 0) continue;
    uint64_t given[11] = {CLONE_INTO_CGROUP, [4] = SIGCHLD, [10] = (uint64_t)cgroups[i].folder};
    pid_t child = (pid_t)syscall(NR_CLONE3, given, sizeof given);
    if (child >= 0) cgroups[i].join = -1;
    return child;
  }
  return -1;
}

pid_t fork_into_cgroups(void) {
  pid_t child = born_inside();
  if (child < 0) child = fork();
  for (int i = 0; child == 0 && i < cgroup_count; i++)
    if (cgroups[i].join >= 0 && write(cgroups[i].join, "0", 1) < 0) continue;
  return child;
}

/* Sends SIGKILL to all processes of the group; false when there are none. */
static int kill_all(const struct cgroup *cgroup) {
  char text[4096];
  int file = openat(cgroup->folder, "cgroup.procs", O_RDONLY | O_CLOEXEC);
  ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (got <= 0) return 0;
  /* Linux 5.14. Processes that start others faster than this loop ends them cannot leave it. */
  if (write_text(cgroup, "cgroup.kill", "1") == 0) return 1;
  text[got] = '\0';
  for (char *at = text, *end; *at != '\0'; at = end + 1) {
    pid_t pid = (pid_t)strtol(at, &end, 10);
    if (*end != '\n') break;
    if (pid > 0) kill(pid, SIGKILL);
  }
  return 1;
}

void end_cgroups(void) {
  for (int i = 0; i < cgroup_count; i++)
    for (int round = 0; round < ROUNDS && kill_all(&cgroups[i]); round++) moment();
}

void remove_cgroups(void) {
  for (int i = 0; i < cgroup_count; i++)
    for (int round = 0; round < ROUNDS; round++) {
      if (unlinkat(cgroups[i].parent, cgroups[i].name, AT_REMOVEDIR) == 0 || errno != EBUSY) break;
      kill_all(&cgroups[i]);
      moment();
    }
}

int is_delegated(const char *path) {
  static const char *const names[] = {"user.delegate", "trusted.delegate"};
  char value = '\0';
  for (size_t i = 0; i < 2; i++)
    if (getxattr(path, names[i], &value, 1) == 1 && value == '1') return 1;
  return 0;
}
