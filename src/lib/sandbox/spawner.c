/*
 * vodbox-sandbox --spawn-server: starts programs for a process that is too large to fork quickly. fork(2) copies the
 * page tables of its caller, 6 ms for each 100 MB; this process has a few hundred kilobytes.
 *
 * A request on standard input is its length (4 bytes, little-endian) and strings that each end with NUL:
 *
 *   ID SOCKET DIRECTORY COUNT NAME=VALUE... PROGRAM [ARGUMENT...]
 *
 * SOCKET is the name of an abstract unix socket (unix(7)) without its leading NUL. Before the program starts, three
 * connections to it are made, each of which begins with ID (32 characters) and one of 0, 1 and 2: they become its
 * standard input, output and error. Answers on standard output, one a line:
 *
 *   started ID PID        failed ID ERRNO        exited ID STATUS SIGNAL
 *
 * The end of standard input ends this process; programs that were started with --parent end with it.
 */
#define _GNU_SOURCE
#include "spawner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_REQUEST (1 << 20)
#define MAX_STRINGS 4096
#define MAX_RUNNING 1024
#define ID_LENGTH 32
#define CHANNELS 3

struct running {
  pid_t pid;
  char id[ID_LENGTH + 1];
};
static struct running running[MAX_RUNNING];

static void __attribute__((noreturn)) give_up(const char *what) {
  fprintf(stderr, "vodbox-sandbox: %s: %s\n", what, strerror(errno));
  _exit(125);
}

/* A failed write means that the requester has exited. */
static void answer(const char *line) {
  for (size_t length = strlen(line); length > 0;) {
    ssize_t written = write(STDOUT_FILENO, line, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(0);
    line += written, length -= (size_t)written;
  }
}

static int connect_channel(const char *socket_name, const char *id, int channel) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(socket_name);
  if (length + 1 > sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
  memcpy(address.sun_path + 1, socket_name, length);
  int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
  char head[ID_LENGTH + 1];
  memcpy(head, id, ID_LENGTH);
  head[ID_LENGTH] = (char)('0' + channel);
  if (connect(connection, (struct sockaddr *)&address, size) == 0 &&
      write(connection, head, sizeof head) == (ssize_t)sizeof head)
    return connection;
  int error = errno;
  close(connection);
  return errno = error, -1;
}

static void __attribute__((noreturn)) become(const int *channels, const char *directory, char **environment, char **command) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  for (int channel = 0; channel < CHANNELS; channel++)
    if (dup2(channels[channel], channel) < 0) _exit(125);
  if (chdir(directory) != 0) give_up(directory);
  execve(command[0], command, environment);
  int error = errno;
  fprintf(stderr, "vodbox-sandbox: %s: %s\n", command[0], strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}

static struct running *slot_of(pid_t pid) {
  for (int i = 0; i < MAX_RUNNING; i++)
    if (running[i].pid == pid) return &running[i];
  return NULL;
}

/* Returns 0, or the error. `strings` ends with NULL. */
static int start_program(char **strings, int count, struct running *slot) {
  int environment_count = atoi(strings[3]);
  if (environment_count < 0 || 4 + environment_count >= count) return EINVAL;
  char **command = strings + 4 + environment_count;
  char *environment[MAX_STRINGS + 1];
  memcpy(environment, strings + 4, (size_t)environment_count * sizeof *environment);
  environment[environment_count] = NULL;
  int channels[CHANNELS], error = 0, open_channels = 0;
  for (; open_channels < CHANNELS; open_channels++) {
    channels[open_channels] = connect_channel(strings[1], strings[0], open_channels);
    if (channels[open_channels] < 0) {
      error = errno;
      break;
    }
  }
  if (error == 0) {
    slot->pid = fork();
    if (slot->pid == 0) become(channels, strings[2], environment, command);
    if (slot->pid < 0) error = errno, slot->pid = 0;
  }
  while (open_channels > 0) close(channels[--open_channels]);
  return error;
}

static void serve_request(char *text, size_t length) {
  static char *strings[MAX_STRINGS + 1];
  int count = 0;
  if (length == 0 || text[length - 1] != '\0') exit(125);
  for (char *at = text; at < text + length && count < MAX_STRINGS; at += strlen(at) + 1) strings[count++] = at;
  strings[count] = NULL;
  if (count < 5 || strlen(strings[0]) != ID_LENGTH) exit(125);
  char line[128];
  struct running *slot = slot_of(0);
  int error = slot ? start_program(strings, count, slot) : EAGAIN;
  if (error == 0) {
    memcpy(slot->id, strings[0], ID_LENGTH + 1);
    snprintf(line, sizeof line, "started %s %d\n", slot->id, (int)slot->pid);
  } else snprintf(line, sizeof line, "failed %s %d\n", strings[0], error);
  answer(line);
}

static void reap(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    struct running *slot = slot_of(pid);
    if (!slot) continue;
    char line[128];
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0, by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    snprintf(line, sizeof line, "exited %s %d %d\n", slot->id, code, by);
    slot->pid = 0;
    answer(line);
  }
}

/* Reads what is there; serves each request that is complete. Returns 0 at the end of the input. */
static int read_requests(void) {
  static char buffer[MAX_REQUEST + 4];
  static size_t held;
  ssize_t got = read(STDIN_FILENO, buffer + held, sizeof buffer - held);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return 0;
  held += (size_t)got;
  for (size_t at = 0;;) {
    uint32_t length = 0;
    for (int i = 0; i < 4 && held - at >= 4; i++) length |= (uint32_t)(unsigned char)buffer[at + (size_t)i] << (8 * i);
    if (length > MAX_REQUEST) exit(125);
    if (held - at < 4 || held - at - 4 < length) {
      memmove(buffer, buffer + at, held - at);
      held -= at;
      return 1;
    }
    serve_request(buffer + at + 4, length);
    at += 4 + length;
  }
}

int spawn_server(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  signal(SIGPIPE, SIG_IGN);
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ended, NULL);
  int signals = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) give_up("signalfd");
  struct pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};
  for (;;) {
    if (poll(sources, 2, -1) < 0) continue;
    if (sources[1].revents) {
      struct signalfd_siginfo info;
      while (read(signals, &info, sizeof info) > 0) continue;
      reap();
    }
    if (sources[0].revents && !read_requests()) return 0;
  }
}
