/* What the parts of the launcher share; see launcher.c. */
#pragma once
#include <sys/types.h>

#define EXIT_CONFINE 125

void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...);

/* ---- filter.c ---- */

/* Whether the program may start other processes; a script needs some. */
enum forks { NO_FORKS, COUNTED_FORKS };
/* Installs the system call filter in this process. `has_hardware`: drivers of hardware encoders need shared memory. */
void install_filter(enum forks forks, int has_hardware);

/* ---- processes.c ---- */

struct run {
  /* Ends with NULL; the first is the program's absolute path. */
  char **command;
  const char *directory;
  /* Confines the program's own process; null when that was done before. */
  void (*confine)(void);
  /* Whether this process was the last outside of a new PID namespace: its next child is the first one inside. */
  int is_namespace;
  int has_hardware;
  /* A descriptor of /proc, or -1: it counts and finds the processes below the launcher. */
  int proc;
};
/* Runs the program to its end, and ends everything that it started. Returns its wait status. */
int supervise(const struct run *run);
void __attribute__((noreturn)) end_like(int status);
