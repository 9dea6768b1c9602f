/* What the parts of the launcher share; see launcher.c. */
#pragma once
#include <sys/types.h>

#define EXIT_CONFINE 125

void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...);

/* ---- filter.c ---- */

/* Whether the program may start other processes; a script needs some. */
enum forks { NO_FORKS, COUNTED_FORKS };
/*
 * Installs the system call filter in this process, which is the only one that its program may send signals to. A script may
 * send them to the processes that it starts when `is_contained`: something else keeps signals inside of the sandbox.
 * `has_hardware`: drivers of hardware encoders need shared memory.
 */
void install_filter(enum forks forks, int is_contained, int has_hardware);

/* ---- cgroups.c ---- */

/* Version 1 has one for memory and one for processes. */
#define MAX_CGROUPS 2
/* Creates a control group with these limits (0 bytes: none) for the program; without effect where that is not possible. */
void create_cgroup(const char *path, unsigned long long memory, unsigned long long threads);
/* fork(2); the child is in the groups. */
pid_t fork_into_cgroups(void);
/* Ends the processes that are left in the groups. */
void end_cgroups(void);
void remove_cgroups(void);
/* Whether systemd has left the group to its service (systemd.resource-control(5), Delegate=). */
int is_delegated(const char *path);

/* ---- processes.c ---- */

struct run {
  /* Ends with NULL; the first is the program's absolute path. */
  char **command;
  const char *directory;
  /* Confines the program's own process; null when that was done before. */
  void (*confine)(void);
  /* Whether this process was the last outside of a new PID namespace: its next child is the first one inside. */
  int is_namespace;
  /* Whether signals cannot leave the sandbox. */
  int is_contained;
  int has_hardware;
  /* Whether something else confines the program, which this one would prevent from it. */
  int is_open;
  /* The most threads of the program, or of all processes of a script; with more the run is ended. */
  unsigned long long threads;
  /* A descriptor of /proc, or -1: it counts and finds the processes below the launcher. */
  int proc;
};
/* Runs the program to its end, and ends everything that it started. Returns its wait status. */
int supervise(const struct run *run);
void __attribute__((noreturn)) end_like(int status);
