/*
 * The processes of the launcher: the one that the caller knows and waits for; the supervisor; and the program. The
 * supervisor is the first process of the PID namespace, with which all others in it end. Without a namespace it adopts
 * what the program leaves (PR_SET_CHILD_SUBREAPER) and kills it. The first process of a namespace ignores signals that it
 * has no handler for, so the program is not that one itself.
 */
#define _GNU_SOURCE
#include "launcher.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * At the same time, for a script, which is ended when it has more. They are counted, and so are threads, because a limit of
 * the kernel (RLIMIT_NPROC) would count all of the user's together, and not hold for root; a filter that asks the
 * supervisor about each of them (SECCOMP_RET_USER_NOTIF) lets it fail with EINTR when a signal arrives meanwhile.
 */
#define MAX_PROCESSES 64
#define COUNT_MS 20
/* Counting takes at most this part of the time. */
#define COUNT_SHARE 50
/* The most processes of the machine that are looked at. */
#define MAX_LISTED 65536
/* Without a PID namespace: that the launcher has ended. */
#define LAUNCHER_ENDED SIGUSR1

/* ---- what is below the supervisor ---- */

struct listed { pid_t pid, parent; unsigned long threads; };

/* A process of `proc` by its number; false when it has ended. */
static int read_process(int proc, const char *number, struct listed *found) {
  char path[32], stat[512];
  snprintf(path, sizeof path, "%.10s/stat", number);
  int file = openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t got = read(file, stat, sizeof stat - 1);
  close(file);
  if (got <= 0) return 0;
  stat[got] = '\0';
  /* proc(5): the name, which may contain anything, is in parentheses; then state and parent. */
  char *field = strrchr(stat, ')');
  if (!field || field[1] == '\0' || field[2] == '\0' || field[2] == 'Z') return 0;
  *found = (struct listed){(pid_t)atoi(number), (pid_t)atoi(field + 4), 0};
  /* The state is the third field, the number of threads the twentieth. */
  for (int index = 3; field && index <= 20; index++) field = strchr(field + 1, ' ');
  if (field) found->threads = strtoul(field, NULL, 10);
  return 1;
}

/* The processes of the machine, from `proc`; 0 when it cannot be read. */
static size_t list_processes(int proc, struct listed *all) {
  size_t count = 0;
  int folder = proc < 0 ? -1 : openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = folder < 0 ? NULL : fdopendir(folder);
  if (!entries) return 0;
  for (struct dirent *entry; count < MAX_LISTED && (entry = readdir(entries));)
    if (isdigit((unsigned char)entry->d_name[0]) && strlen(entry->d_name) <= 10)
      count += (size_t)read_process(proc, entry->d_name, &all[count]);
  closedir(entries);
  return count;
}

/* The number of this process in `proc`, whose PID namespace may be another one; 0: not known. */
static pid_t own_pid(int proc) {
  char text[16] = "";
  return proc >= 0 && readlinkat(proc, "self", text, sizeof text - 1) > 0 ? (pid_t)atoi(text) : 0;
}

struct amount { size_t processes; unsigned long long threads; };

/* What is below this process; processes are sent the signal `kill_with`, unless it is 0. */
static struct amount descendants(int proc, int kill_with) {
  static struct listed all[MAX_LISTED];
  static pid_t below[MAX_LISTED];
  size_t listed = list_processes(proc, all);
  struct amount amount = {0, 0};
  pid_t parent = own_pid(proc);
  /* All processes of the machine are below 0. */
  if (parent <= 0) return amount;
  for (size_t at = 0; listed > 0 && at <= amount.processes; parent = below[at++]) {
    for (size_t i = 0; i < listed && amount.processes < MAX_LISTED; i++) {
      if (all[i].parent != parent) continue;
      below[amount.processes++] = all[i].pid;
      amount.threads += all[i].threads;
    }
    if (at == amount.processes) break;
  }
  for (size_t i = 0; kill_with != 0 && i < amount.processes; i++) kill(below[i], kill_with);
  return amount;
}

/* What is counted while a program runs: it alone, by its number in `proc`, or all that a script has started. */
struct counted { enum forks forks; int proc; pid_t pid; unsigned long long threads; };

static int has_too_many(const struct counted *counted) {
  if (counted->forks == COUNTED_FORKS) {
    struct amount amount = descendants(counted->proc, 0);
    return amount.processes > MAX_PROCESSES || amount.threads > counted->threads;
  }
  char number[16];
  struct listed found;
  snprintf(number, sizeof number, "%d", (int)counted->pid);
  return counted->pid > 0 && read_process(counted->proc, number, &found) && found.threads > counted->threads;
}

/* Until nothing is left: what is adopted while others are killed is killed in the next round. */
static void end_descendants(int proc) {
  for (;;) {
    pid_t ended = waitpid(-1, NULL, WNOHANG);
    if (ended < 0 && errno == ECHILD) return;
    if (ended == 0 && descendants(proc, SIGKILL).processes == 0) return;
    struct timespec moment = {0, 1000000};
    if (ended == 0) nanosleep(&moment, NULL);
  }
}

/* ---- the program ---- */

static int is_script(const char *path) {
  char head[2] = "";
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = file < 0 ? -1 : read(file, head, sizeof head);
  if (file >= 0) close(file);
  return got == 2 && head[0] == '#' && head[1] == '!';
}

static void __attribute__((noreturn)) start(const struct run *run, enum forks forks) {
  sigset_t none;
  sigemptyset(&none);
  /* With the supervisor, also where there is no namespace. */
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (chdir(run->directory) != 0) fail("%s", run->directory);
  if (run->confine) run->confine();
  if (!run->is_open) install_filter(forks, run->is_contained, run->has_hardware);
  sigprocmask(SIG_SETMASK, &none, NULL);
  /* close_range(2); older kernels have only what is inherited on purpose open here. */
  syscall(436, 3, ~0U, 0);
  execv(run->command[0], run->command);
  int error = errno;
  fprintf(stderr, "vodbox-sandbox: %s: %s\n", run->command[0], strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}

static long long milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Passes signals on to `child` until it ends, and reaps whatever else ends; returns its wait status. */
static int attend(pid_t child, const sigset_t *handled, const struct counted *counted) {
  int signals = signalfd(-1, handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) fail("signalfd");
  struct pollfd source = {signals, POLLIN, 0};
  long long next = 0;
  for (;;) {
    if (poll(&source, 1, counted ? COUNT_MS : -1) < 0) continue;
    long long before = milliseconds();
    if (counted && before >= next) {
      if (has_too_many(counted)) return kill(child, SIGKILL), SIGKILL;
      long long now = milliseconds();
      next = now + COUNT_MS + (now - before) * COUNT_SHARE;
    }
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == LAUNCHER_ENDED) return kill(child, SIGKILL), SIGKILL;
      if (info.ssi_signo != SIGCHLD) {
        kill(child, (int)info.ssi_signo);
        continue;
      }
      int status;
      for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
        if (ended == child) return status;
    }
  }
}

static void __attribute__((noreturn)) be_supervisor(const struct run *run, const sigset_t *signals, int alive, int result) {
  /* The first process of a namespace takes the others with it; another one has to end them. */
  prctl(PR_SET_PDEATHSIG, run->is_namespace ? SIGKILL : LAUNCHER_ENDED, 0, 0, 0);
  if (!run->is_namespace) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  /* A launcher that died before that is not reported; its end of the pipe is closed. */
  struct pollfd end = {alive, 0, 0};
  if (poll(&end, 1, 0) != 0) _exit(EXIT_CONFINE);
  struct counted counted = {is_script(run->command[0]) ? COUNTED_FORKS : NO_FORKS, run->proc, 0, run->threads};
  int number[2];
  if (pipe2(number, O_CLOEXEC) != 0) fail("pipe");
  pid_t program = fork_into_cgroups();
  if (program < 0) fail("fork");
  if (program == 0) {
    pid_t own = own_pid(run->proc);
    if (write(number[1], &own, sizeof own) < 0) _exit(EXIT_CONFINE);
    start(run, counted.forks);
  }
  close(number[1]);
  if (read(number[0], &counted.pid, sizeof counted.pid) != sizeof counted.pid) counted.pid = 0;
  close(number[0]);
  /* Standard input and output belong to the program: a reader waits for their last holder. */
  for (int standard = 0; standard < 3; standard++) close(standard);
  int status = attend(program, signals, &counted);
  if (!run->is_namespace) end_descendants(run->proc);
  end_cgroups();
  if (write(result, &status, sizeof status) < 0) _exit(EXIT_CONFINE);
  _exit(0);
}

int supervise(const struct run *run) {
  int alive[2], result[2];
  if (pipe2(alive, O_CLOEXEC) != 0 || pipe2(result, O_CLOEXEC) != 0) fail("pipe");
  sigset_t signals;
  sigemptyset(&signals);
  for (const int *one = (const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP, LAUNCHER_ENDED, 0}; *one; one++)
    sigaddset(&signals, *one);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  pid_t supervisor = fork();
  if (supervisor < 0) fail("fork");
  if (supervisor == 0) {
    close(alive[1]);
    be_supervisor(run, &signals, alive[0], result[1]);
  }
  close(alive[0]);
  close(result[1]);
  for (int standard = 0; standard < 3; standard++) close(standard);
  sigdelset(&signals, LAUNCHER_ENDED);
  int status = attend(supervisor, &signals, NULL), reported;
  if (read(result[0], &reported, sizeof reported) == sizeof reported) status = reported;
  remove_cgroups();
  return status;
}

void __attribute__((noreturn)) end_like(int status) {
  if (WIFSIGNALED(status)) {
    int number = WTERMSIG(status);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    signal(number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    kill(getpid(), number);
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CONFINE);
}
