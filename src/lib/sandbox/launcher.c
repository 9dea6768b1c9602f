/*
 * vodbox-sandbox: runs a program that reads untrusted media where it can reach its own files and nothing else.
 *
 *   vodbox-sandbox --mode namespaces|landlock|filter|groups [--read PATH]... [--write PATH]... [--device PATH]...
 *                  [--data BYTES] [--cpu SECONDS] [--fsize BYTES] [--nofile N] [--threads N] [--nice N]
 *                  [--parent PID] [--cgroup PATH]... [--memory BYTES] -- PROGRAM [ARGUMENT...]
 *   vodbox-sandbox --check
 *   vodbox-sandbox --delegated PATH    (exit status 0: yes, 1: no)
 *   vodbox-sandbox --spawn-server    (spawner.c)
 *
 * namespaces: user, mount, network, PID and IPC namespaces of its own (namespaces(7)). The root is an empty,
 *   read-only tmpfs that holds the listed paths at their own places. No network interface is up.
 * landlock: where user namespaces are not allowed (containers, hardened units), the kernel's Landlock rules
 *   (landlock(7)): the listed paths alone can be opened; TCP and signals to other processes are refused where the
 *   kernel knows those rules (ABI 4 and 6), and by the filter.
 *
 * filter: the rest below, for a program that something else isolates (bubblewrap).
 *
 * groups: only the control groups below, for a bubblewrap that starts the launcher again for its filter. It may be
 *   set-user-ID, so it keeps its privileges.
 *
 * In every other mode all capabilities are dropped, no_new_privs is set, a filter refuses system calls (filter.c), and the program
 * and everything that it started ends with --parent, and with the program (processes.c). Each --cgroup is created for the
 * run, with a limit of --memory and --threads, and removed after it (cgroups.c). --check prints the modes that
 * work here, one a line. Exit status: the program's, or its signal; 125 when it could not be confined, 126
 * or 127 when it could not be started.
 */
#define _GNU_SOURCE
#include "launcher.h"
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_GRANTS 256
#define DEFAULT_THREADS 512
/* RLIMIT_DATA does not count the stack of the first thread. C libraries give other threads stacks of this size. */
#define STACK_BYTES (8 << 20)
/* Where the new root is assembled: any directory will do, since the old root is moved away from under it first. */
#define BASE "/tmp"

enum access { READ, WRITE, DEVICE };
struct grant {
  const char *path;
  /* Without symbolic links: an absolute link would be resolved against the new root. */
  char *real;
  enum access access;
};
static struct grant grants[MAX_GRANTS];
static int grant_count;

void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...) {
  int error = errno;
  va_list values;
  va_start(values, format);
  fputs("vodbox-sandbox: ", stderr);
  vfprintf(stderr, format, values);
  va_end(values);
  fprintf(stderr, ": %s\n", strerror(error));
  _exit(EXIT_CONFINE);
}

/* ---- grants ---- */

static void add_grant(enum access access, const char *path) {
  if (grant_count == MAX_GRANTS || path[0] != '/') {
    errno = EINVAL;
    fail("%s", path);
  }
  /* A program that runs at the same time could replace a folder that it may write to, and so choose what is granted. */
  struct stat found;
  if (access == WRITE && lstat(path, &found) == 0 && S_ISLNK(found.st_mode)) {
    errno = ELOOP;
    fail("%s", path);
  }
  char *real = realpath(path, NULL);
  /* Devices and system folders differ between machines; what is not there cannot be granted. */
  if (!real) {
    if (access == WRITE) fail("%s", path);
    return;
  }
  grants[grant_count++] = (struct grant){path, real, access};
}

static int by_length(const void *a, const void *b) {
  size_t one = strlen(((const struct grant *)a)->path), other = strlen(((const struct grant *)b)->path);
  return (one > other) - (one < other);
}

/* ---- namespaces ---- */

static void write_file(const char *path, const char *text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, text, strlen(text)) < 0) fail("%s", path);
  close(file);
}

static void own_user_namespace(void) {
  char map[64];
  uid_t uid = geteuid();
  gid_t gid = getegid();
  if (unshare(CLONE_NEWUSER) != 0) {
    /* root needs none for the other namespaces. */
    if (uid != 0) fail("user namespace");
    return;
  }
  write_file("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "%u %u 1", (unsigned)uid, (unsigned)uid);
  write_file("/proc/self/uid_map", map);
  snprintf(map, sizeof map, "%u %u 1", (unsigned)gid, (unsigned)gid);
  write_file("/proc/self/gid_map", map);
}

static char *joined(const char *prefix, const char *path) {
  static char buffer[PATH_MAX];
  if ((size_t)snprintf(buffer, sizeof buffer, "%s%s", prefix, path) >= sizeof buffer) {
    errno = ENAMETOOLONG;
    fail("%s", path);
  }
  return buffer;
}

/* Makes the folders that lead to `path`; what is there already is left as it is. */
static void make_parents(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(path, 0755) != 0 && errno != EEXIST) fail("%s", path);
    *slash = '/';
  }
}

/* A mount's locked flags (mount_namespaces(7)) must be named again, or the kernel refuses the change. */
static unsigned long kept_flags(const char *path) {
  struct statvfs found;
  if (statvfs(path, &found) != 0) fail("%s", path);
  unsigned long flags = 0;
  if (found.f_flag & ST_NOSUID) flags |= MS_NOSUID;
  if (found.f_flag & ST_NODEV) flags |= MS_NODEV;
  if (found.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
  if (found.f_flag & ST_RDONLY) flags |= MS_RDONLY;
  if (found.f_flag & ST_NOATIME) flags |= MS_NOATIME;
  if (found.f_flag & ST_NODIRATIME) flags |= MS_NODIRATIME;
  if (found.f_flag & ST_RELATIME) flags |= MS_RELATIME;
  return flags;
}

static void bind_grant(const struct grant *grant) {
  struct stat found;
  char from[PATH_MAX], to[PATH_MAX];
  strcpy(from, joined("/oldroot", grant->real));
  strcpy(to, joined("/newroot", grant->path));
  if (stat(from, &found) != 0) fail("%s", grant->path);
  make_parents(to);
  if (S_ISDIR(found.st_mode)) {
    if (mkdir(to, 0755) != 0 && errno != EEXIST) fail("%s", grant->path);
  } else {
    int file = open(to, O_CREAT | O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0644);
    if (file >= 0) close(file);
    else if (errno != EEXIST && access(to, F_OK) != 0) fail("%s", grant->path);
  }
  if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) != 0) fail("bind %s", grant->path);
  unsigned long flags = kept_flags(to) | MS_NOSUID;
  if (grant->access != DEVICE) flags |= MS_NODEV;
  if (grant->access == READ) flags |= MS_RDONLY;
  /* What a program writes it cannot start. */
  if (grant->access == WRITE) flags |= MS_NOEXEC;
  if (mount(NULL, to, NULL, MS_REMOUNT | MS_BIND | flags, NULL) != 0) fail("remount %s", grant->path);
}

/*
 * The steps are those of bubblewrap: the tmpfs becomes the root with the old root inside it, so that whatever it
 * covered can be bound; then the old root goes.
 */
static void own_root(void) {
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) fail("private mounts");
  if (mount("tmpfs", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") != 0) fail("tmpfs");
  if (chdir(BASE) != 0 || mkdir("newroot", 0755) != 0 || mkdir("oldroot", 0755) != 0) fail("new root");
  if (syscall(SYS_pivot_root, ".", "oldroot") != 0 || chdir("/") != 0) fail("pivot_root");
  if (mount("/newroot", "/newroot", NULL, MS_BIND | MS_REC, NULL) != 0) fail("new root");
  qsort(grants, (size_t)grant_count, sizeof *grants, by_length);
  for (int i = 0; i < grant_count; i++) bind_grant(&grants[i]);
  if (umount2("/oldroot", MNT_DETACH) != 0) fail("old root");
  if (chdir("/newroot") != 0 || syscall(SYS_pivot_root, ".", ".") != 0) fail("pivot_root");
  if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) fail("old root");
  if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
    fail("read-only root");
}

/* ---- Landlock ---- */

/* From linux/landlock.h, which the distribution's headers may have in an older version. */
struct ll_ruleset { uint64_t fs, net, scoped; };
struct ll_path { uint64_t access; int32_t parent; } __attribute__((packed));
#define LL_EXECUTE (1ULL << 0)
#define LL_WRITE_FILE (1ULL << 1)
#define LL_READ_FILE (1ULL << 2)
#define LL_READ_DIR (1ULL << 3)
/* MAKE_CHAR, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM. */
#define LL_SPECIAL_FILES (1ULL << 6 | 1ULL << 9 | 1ULL << 10 | 1ULL << 11 | 1ULL << 12)
#define LL_TRUNCATE (1ULL << 14)
#define LL_IOCTL_DEV (1ULL << 15)
#define LL_FILE_RIGHTS (LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE | LL_IOCTL_DEV)

/* Linux 6.12: no signals to processes outside. */
#define LL_ABI_OF_SIGNALS 6

static int landlock_abi(void) { return (int)syscall(444, NULL, 0, 1); }

static void apply_landlock(void) {
  int abi = landlock_abi();
  if (abi < 1) fail("landlock");
  /* Rights by ABI: 13 at first, then REFER, TRUNCATE, IOCTL_DEV. */
  uint64_t all = (1ULL << (abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13)) - 1;
  struct ll_ruleset rules = {all, abi >= 4 ? 3 : 0, abi >= LL_ABI_OF_SIGNALS ? 3 : 0};
  size_t size = abi >= LL_ABI_OF_SIGNALS ? 24 : abi >= 4 ? 16 : 8;
  int ruleset = (int)syscall(444, &rules, size, 0);
  if (ruleset < 0) fail("landlock_create_ruleset");
  for (int i = 0; i < grant_count; i++) {
    struct stat found;
    int path = open(grants[i].real, O_PATH | O_CLOEXEC);
    if (path < 0 || fstat(path, &found) != 0) fail("%s", grants[i].path);
    uint64_t access = LL_READ_FILE | LL_READ_DIR | LL_EXECUTE;
    if (grants[i].access == WRITE) access = all & ~(LL_EXECUTE | LL_SPECIAL_FILES);
    if (grants[i].access == DEVICE) access = LL_READ_FILE | LL_READ_DIR | LL_WRITE_FILE | LL_IOCTL_DEV;
    access &= all & (S_ISDIR(found.st_mode) ? ~0ULL : LL_FILE_RIGHTS);
    struct ll_path rule = {access, path};
    if (syscall(445, ruleset, 1, &rule, 0) != 0) fail("landlock_add_rule %s", grants[i].path);
    close(path);
  }
  if (syscall(446, ruleset, 0) != 0) fail("landlock_restrict_self");
  close(ruleset);
}

/* ---- privileges and limits ---- */

static void drop_privileges(void) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  /* Without the right to change it the bounding set stays; no_new_privs and the empty sets below still hold. */
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; capability++) continue;
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
  if (syscall(SYS_capset, &header, none) != 0) fail("capset");
}

struct limit { const char *name; int resource; };
static const struct limit limits[] = {
    {"--data", RLIMIT_DATA}, {"--cpu", RLIMIT_CPU}, {"--fsize", RLIMIT_FSIZE}, {"--nofile", RLIMIT_NOFILE}};

static void set_limit(int resource, rlim_t value) {
  struct rlimit current;
  if (getrlimit(resource, &current) != 0) fail("limit");
  if (current.rlim_max != RLIM_INFINITY && value > current.rlim_max) value = current.rlim_max;
  struct rlimit wanted = {value, value};
  if (setrlimit(resource, &wanted) != 0) fail("limit");
}

/* ---- what works here ---- */

static int works(void (*confine)(void)) {
  pid_t child = fork();
  if (child < 0) return 0;
  if (child == 0) {
    int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, 2);
    confine();
    /* By its effect: nothing was granted. */
    _exit(open("/etc/passwd", O_RDONLY) < 0 && open("/proc/self/maps", O_RDONLY) < 0 ? 0 : 1);
  }
  int status;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void confine_by_namespaces(void) {
  own_user_namespace();
  if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC) != 0) fail("namespaces");
  own_root();
  drop_privileges();
}

static void confine_by_landlock(void) {
  drop_privileges();
  apply_landlock();
}

static int check(void) {
  if (works(confine_by_namespaces)) puts("namespaces");
  if (works(confine_by_landlock)) printf("landlock %d\n", landlock_abi());
  return 0;
}

/* Whether devices of a hardware encoder were granted, in addition to those that every program gets. */
static int has_hardware(void) {
  for (int i = 0; i < grant_count; i++)
    if (grants[i].access == DEVICE && strcmp(grants[i].path, "/dev/null") != 0 &&
        strcmp(grants[i].path, "/dev/urandom") != 0)
      return 1;
  return 0;
}

static unsigned long long number(const char *text) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (errno != 0 || *text < '0' || *text > '9' || *end != '\0') {
    errno = EINVAL;
    fail("%s", text);
  }
  return value;
}

int main(int count, char **arguments) {
  const char *mode = "";
  pid_t parent = 0;
  unsigned long long threads = DEFAULT_THREADS, memory = 0;
  const char *paths[MAX_CGROUPS];
  int path_count = 0;
  int at = 1;
  if (count == 2 && strcmp(arguments[1], "--check") == 0) return check();
  if (count == 2 && strcmp(arguments[1], "--spawn-server") == 0) return spawn_server();
  if (count == 3 && strcmp(arguments[1], "--delegated") == 0) return !is_delegated(arguments[2]);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  set_limit(RLIMIT_STACK, STACK_BYTES);
  for (; at + 1 < count && strcmp(arguments[at], "--") != 0; at += 2) {
    const char *name = arguments[at], *value = arguments[at + 1];
    if (strcmp(name, "--mode") == 0) mode = value;
    else if (strcmp(name, "--read") == 0) add_grant(READ, value);
    else if (strcmp(name, "--write") == 0) add_grant(WRITE, value);
    else if (strcmp(name, "--device") == 0) add_grant(DEVICE, value);
    else if (strcmp(name, "--parent") == 0) parent = (pid_t)number(value);
    else if (strcmp(name, "--threads") == 0) threads = number(value);
    else if (strcmp(name, "--memory") == 0) memory = number(value);
    else if (strcmp(name, "--cgroup") == 0) {
      if (path_count < MAX_CGROUPS) paths[path_count++] = value;
    } else if (strcmp(name, "--nice") == 0) setpriority(PRIO_PROCESS, 0, (int)number(value));
    else {
      int known = 0;
      for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (strcmp(name, limits[i].name) == 0) known = 1, set_limit(limits[i].resource, number(value));
      if (!known) {
        errno = EINVAL;
        fail("%s", name);
      }
    }
  }
  char **command = arguments + at + 1;
  if (at + 1 >= count || command[0][0] != '/') {
    errno = EINVAL;
    fail("the program's absolute path is missing");
  }
  char directory[PATH_MAX];
  if (!getcwd(directory, sizeof directory)) fail("working directory");
  int by_namespaces = strcmp(mode, "namespaces") == 0, by_landlock = strcmp(mode, "landlock") == 0;
  int is_open = strcmp(mode, "groups") == 0;
  if (!by_namespaces && !by_landlock && !is_open && strcmp(mode, "filter") != 0) {
    errno = EINVAL;
    fail("--mode %s", mode);
  }
  struct run run = {
      .command = command, .directory = directory, .is_namespace = by_namespaces, .has_hardware = has_hardware(),
      .threads = threads, .is_open = is_open, .is_contained = !by_landlock || landlock_abi() >= LL_ABI_OF_SIGNALS};
  /* Before it is out of reach; it is not passed on to the program. */
  run.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < path_count; i++) create_cgroup(paths[i], memory, threads);
  if (by_namespaces) confine_by_namespaces();
  else if (!is_open) {
    drop_privileges();
    if (by_landlock) run.confine = apply_landlock;
  }
  /* Nothing that runs in the sandbox may read this process, or its supervisor. */
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  /* Last: a change of credentials clears it (prctl(2)). */
  if (parent != 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) _exit(EXIT_CONFINE);
  }
  end_like(supervise(&run));
}
