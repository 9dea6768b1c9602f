/*
 * A compromised program: each argument names what it tries. Prints `DONE name` when it succeeded, `refused name ERRNO`
 * otherwise. Compiled by hostile.ts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUCH (1536UL << 20)
#define LARGE (200UL << 20)

static int touch(void *memory) {
  if (memory == MAP_FAILED || !memory) return -1;
  for (size_t at = 0; at < MUCH; at += 4096) ((volatile char *)memory)[at] = 1;
  return 0;
}
static int mapped(int flags, int file) {
  if (file >= 0 && ftruncate(file, MUCH) != 0) return -1;
  return touch(mmap(NULL, MUCH, PROT_READ | PROT_WRITE, flags, file, 0));
}
static int private_memory(void) { return mapped(MAP_PRIVATE | MAP_ANONYMOUS, -1); }
/* No more than one process may have. It stays to the end of the input, so that several have it at the same time. */
static int large_memory(void) {
  char rest;
  volatile char *memory = malloc(LARGE);
  if (!memory) return -1;
  for (size_t at = 0; at < LARGE; at += 4096) memory[at] = 1;
  while (read(STDIN_FILENO, &rest, 1) > 0) continue;
  return 0;
}
static int shared_memory(void) { return mapped(MAP_SHARED | MAP_ANONYMOUS, -1); }
static int shared_validate(void) { return mapped(MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1); }
static int memory_file(void) {
  int file = memfd_create("x", 0);
  return file < 0 ? -1 : mapped(MAP_SHARED, file);
}
static int dev_shm(void) {
  int file = shm_open("/vodbox-attempt", O_RDWR | O_CREAT, 0600);
  return file < 0 ? -1 : (shm_unlink("/vodbox-attempt"), mapped(MAP_SHARED, file));
}
static int dev_zero(void) {
  int file = open("/dev/zero", O_RDWR);
  return file < 0 ? -1 : touch(mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
}
static int system_v(void) {
  int id = shmget(IPC_PRIVATE, MUCH, IPC_CREAT | 0600);
  if (id < 0) return -1;
  void *memory = shmat(id, NULL, 0);
  shmctl(id, IPC_RMID, NULL);
  return touch(memory == (void *)-1 ? NULL : memory);
}

/* Stacks: RLIMIT_DATA does not count them. */
static int growing_down(void) { return mapped(MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1); }
static int moved_stack(void) {
  volatile char room[1 << 20];
  memset((void *)room, 1, sizeof room);
  void *page = (void *)(((uintptr_t)room + 4095) & ~4095UL);
  return touch(mremap(page, 4096, MUCH, MREMAP_MAYMOVE));
}
static int large_stack(void) {
  struct rlimit wanted = {MUCH, MUCH};
  return setrlimit(RLIMIT_STACK, &wanted);
}

static int forks(void) {
  int made = 0;
  for (int i = 0; i < 400; i++) {
    pid_t child = fork();
    if (child == 0) for (;;) pause();
    made += child > 0;
  }
  printf("forks %d\n", made);
  return made > 64 ? 0 : -1;
}
static int survivor(void) {
  pid_t child = fork();
  if (child != 0) return child > 0 ? 0 : -1;
  setsid();
  if (fork() == 0) {
    for (int i = 0; i < 3; i++) close(i);
    for (;;) pause();
  }
  _exit(0);
}
static int vfork_(void) {
  pid_t child = vfork();
  if (child == 0) _exit(0);
  return child > 0 ? 0 : -1;
}
static void *nothing(void *given) { return given; }
static int threads(void) {
  pthread_t all[20];
  for (int i = 0; i < 20; i++)
    if ((errno = pthread_create(&all[i], NULL, nothing, NULL)) != 0) return -1;
  for (int i = 0; i < 20; i++) pthread_join(all[i], NULL);
  return 0;
}

static void *forever(void *given) {
  for (;;) pause();
  return given;
}
/* More than are allowed, at once. It then waits to be ended. */
static int many_threads(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 32 << 10);
  pthread_attr_setguardsize(&attributes, 0);
  int made = 0;
  for (pthread_t one; made < 8000 && pthread_create(&one, &attributes, forever, NULL) == 0;) made++;
  printf("threads %d\n", made);
  for (;;) pause();
}

/* No process has it: what is not refused finds none, and harms none. */
#define ANOTHER 0x3ffffff0

static int is_known(long result) { return result >= 0 || (errno != EPERM && errno != ENOSYS) ? 0 : -1; }
static int killed(void) { return is_known(kill(ANOTHER, 0)); }
static int killed_group(void) { return is_known(kill(0, 0)); }
static int killed_all(void) { return is_known(kill(-ANOTHER, 0)); }
static int killed_thread(void) { return is_known(syscall(SYS_tkill, ANOTHER, 0)); }
static int killed_thread_of(void) { return is_known(syscall(SYS_tgkill, ANOTHER, ANOTHER, 0)); }
static int queued_signal(void) {
  siginfo_t info = {.si_code = SI_QUEUE};
  return is_known(syscall(SYS_rt_sigqueueinfo, ANOTHER, SIGTERM, &info));
}
static int queued_signal_of(void) {
  siginfo_t info = {.si_code = SI_QUEUE};
  return is_known(syscall(SYS_rt_tgsigqueueinfo, ANOTHER, ANOTHER, SIGTERM, &info));
}
static int owned_by(void) { return is_known(fcntl(1, F_SETOWN, ANOTHER)); }
static int owned_by_thread(void) {
  struct f_owner_ex owner = {F_OWNER_TID, ANOTHER};
  return is_known(fcntl(1, F_SETOWN_EX, &owner));
}
static int owned_by_ioctl(void) { return is_known(ioctl(1, FIOSETOWN, &(int){ANOTHER})); }
static int owned_by_group(void) { return is_known(ioctl(1, SIOCSPGRP, &(int){-ANOTHER})); }
static int other_signal(void) { return is_known(fcntl(1, F_SETSIG, SIGKILL)); }
static int survives_parent(void) { return is_known(prctl(PR_SET_PDEATHSIG, 0)); }
static int limits(void) { return is_known(prlimit(ANOTHER, RLIMIT_CPU, NULL, &(struct rlimit){0, 0})); }
static int limits_of_parent(void) { return is_known(prlimit(getppid(), RLIMIT_CPU, NULL, &(struct rlimit){0, 0})); }
static int affinity(void) { return is_known(sched_setaffinity(ANOTHER, sizeof(cpu_set_t), &(cpu_set_t){{1}})); }
static int scheduler(void) { return is_known(sched_setscheduler(ANOTHER, SCHED_OTHER, &(struct sched_param){0})); }
static int parameters(void) { return is_known(sched_setparam(ANOTHER, &(struct sched_param){0})); }
static int scheduling(void) {
  uint32_t attributes[14] = {sizeof attributes};
  return is_known(syscall(SYS_sched_setattr, ANOTHER, attributes, 0));
}
static int priority(void) { return is_known(setpriority(PRIO_PROCESS, ANOTHER, 0)); }
static int priority_of_group(void) { return is_known(setpriority(PRIO_PGRP, ANOTHER, 0)); }
static int priority_of_user(void) { return is_known(setpriority(PRIO_USER, ANOTHER, 0)); }
static int io_priority(void) { return is_known(syscall(SYS_ioprio_set, 1, ANOTHER, 0)); }
static int io_priority_of_user(void) { return is_known(syscall(SYS_ioprio_set, 3, ANOTHER, 0)); }
static int pages(void) { return is_known(syscall(SYS_migrate_pages, ANOTHER, 1, &(long){1}, &(long){1})); }

/* The same for itself. */
static volatile sig_atomic_t received;
static void receive(int number) {
  (void)number;
  received++;
}
static int own_signals(void) {
  signal(SIGUSR1, receive);
  if (kill(getpid(), SIGUSR1) != 0 || raise(SIGUSR1) != 0 || sigqueue(getpid(), SIGUSR1, (union sigval){0}) != 0) return -1;
  return received == 3 ? 0 : -1;
}
static int own_limits(void) {
  struct rlimit files;
  cpu_set_t processors;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || setrlimit(RLIMIT_NOFILE, &files) != 0) return -1;
  if (prlimit(getpid(), RLIMIT_NOFILE, NULL, &files) != 0) return -1;
  if (sched_getaffinity(0, sizeof processors, &processors) != 0) return -1;
  if (sched_setaffinity(getpid(), sizeof processors, &processors) != 0) return -1;
  return setpriority(PRIO_PROCESS, 0, 19);
}
static int reallocated(void) {
  char *memory = malloc(8 << 20);
  if (!memory) return -1;
  memset(memory, 7, 8 << 20);
  memory = realloc(memory, 64 << 20);
  if (!memory) return -1;
  for (int i = 0; i < 8 << 20; i++)
    if (memory[i] != 7) return -1;
  memory = realloc(memory, 1 << 20);
  return memory && memory[(1 << 20) - 1] == 7 ? 0 : -1;
}

static int new_namespaces(void) { return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET); }
static int new_mounts(void) { return unshare(CLONE_NEWNS); }
static int cloned(void) {
  long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) _exit(0);
  return child > 0 ? 0 : -1;
}
static int cloned3(void) {
  uint64_t given[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
  long child = syscall(435, given, sizeof given);
  if (child == 0) _exit(0);
  return child > 0 ? 0 : -1;
}
static int joined_namespace(void) { return setns(open("/proc/self/ns/user", O_RDONLY), 0) == 0 || errno != EPERM ? 0 : -1; }
static int mounted(void) { return mount("none", "/", "tmpfs", 0, NULL); }
static int opened_tree(void) { return (int)syscall(428, AT_FDCWD, "/", 1); }
static int traced(void) { return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL); }
static int memory_of_parent(void) {
  char byte;
  struct iovec one = {&byte, 1};
  return process_vm_readv(getpid(), &one, 1, &one, 1, 0) > 0 ? 0 : -1;
}
static int pidfd(void) { return (int)syscall(434, getpid(), 0); }
static int key(void) { return (int)syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_PROCESS_KEYRING); }
static int keyring(void) { return (int)syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1); }
static int bpf(void) { return is_known(syscall(SYS_bpf, 0, NULL, 0)); }
static int perf(void) { return is_known(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0)); }
static int fault_handler(void) { return is_known(syscall(SYS_userfaultfd, 1)); }
static int io_uring(void) { return is_known(syscall(425, 1, NULL)); }

static int sock(int family, int type) { return socket(family, type, 0); }
static int tcp(void) { return sock(AF_INET, SOCK_STREAM); }
static int udp(void) { return sock(AF_INET, SOCK_DGRAM); }
static int udp6(void) { return sock(AF_INET6, SOCK_DGRAM); }
static int unix_socket(void) { return sock(AF_UNIX, SOCK_STREAM); }
static int netlink(void) { return sock(AF_NETLINK, SOCK_RAW); }
static int vsock(void) { return sock(40, SOCK_STREAM); }
static int alg(void) { return sock(38, SOCK_SEQPACKET); }
static int pair(void) { return socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){0}); }

/* Standard output is a Unix socket here. */
static int bound(void) { return is_known(bind(1, &(struct sockaddr){AF_UNIX, {0}}, sizeof(sa_family_t))); }
static int listening(void) { return is_known(listen(1, 1)); }
static int connected(void) { return is_known(connect(1, &(struct sockaddr){AF_UNIX, {0}}, sizeof(struct sockaddr_un))); }
static int accepted(void) { return is_known(accept(1, NULL, NULL)); }
static int configured(void) { return is_known(setsockopt(1, SOL_SOCKET, SO_SNDBUF, &(int){65536}, sizeof(int))); }
static int descriptor_sent(void) {
  char byte = '\n', control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec one = {&byte, 1};
  struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(header), &(int){0}, sizeof(int));
  return is_known(sendmsg(1, &message, 0));
}
static int asynchronous(void) { return is_known(syscall(SYS_io_setup, 1, &(long){0})); }
static int watched(void) { return is_known(syscall(SYS_inotify_init1, 0)); }

static int symbolic(void) { return symlink("/etc/passwd", "made-link"); }
static int hard(void) { return close(open("made-file", O_CREAT | O_WRONLY, 0600)), link("made-file", "made-hard"); }
static int fifo(void) { return mkfifo("made-fifo", 0600); }
static int device(void) { return mknod("made-device", S_IFCHR | 0600, 0x103); }
static int socket_file(void) { return mknod("made-socket", S_IFSOCK | 0600, 0); }
static int written(void) { return open("made-written", O_CREAT | O_WRONLY, 0600); }
static int huge_file(void) {
  int file = open("made-huge", O_CREAT | O_WRONLY, 0600);
  signal(SIGXFSZ, SIG_IGN);
  return ftruncate(file, 1LL << 40);
}

struct attempt { const char *name; int (*try)(void); };
static const struct attempt attempts[] = {
    {"private_memory", private_memory}, {"large_memory", large_memory}, {"shared_memory", shared_memory}, {"shared_validate", shared_validate},
    {"memory_file", memory_file}, {"dev_shm", dev_shm}, {"dev_zero", dev_zero}, {"system_v", system_v},
    {"growing_down", growing_down}, {"moved_stack", moved_stack}, {"large_stack", large_stack},
    {"many_threads", many_threads}, {"killed", killed}, {"killed_group", killed_group}, {"killed_all", killed_all},
    {"killed_thread", killed_thread}, {"killed_thread_of", killed_thread_of}, {"queued_signal", queued_signal},
    {"queued_signal_of", queued_signal_of}, {"owned_by", owned_by}, {"owned_by_thread", owned_by_thread},
    {"owned_by_ioctl", owned_by_ioctl}, {"owned_by_group", owned_by_group}, {"other_signal", other_signal},
    {"survives_parent", survives_parent}, {"limits", limits}, {"limits_of_parent", limits_of_parent},
    {"affinity", affinity}, {"scheduler", scheduler}, {"parameters", parameters}, {"scheduling", scheduling},
    {"priority", priority}, {"priority_of_group", priority_of_group}, {"priority_of_user", priority_of_user},
    {"io_priority", io_priority}, {"io_priority_of_user", io_priority_of_user}, {"pages", pages},
    {"own_signals", own_signals}, {"own_limits", own_limits}, {"reallocated", reallocated}, {"bound", bound},
    {"listening", listening}, {"connected", connected}, {"accepted", accepted}, {"configured", configured},
    {"descriptor_sent", descriptor_sent}, {"asynchronous", asynchronous}, {"watched", watched},
    {"forks", forks}, {"survivor", survivor}, {"vfork", vfork_}, {"threads", threads},
    {"new_namespaces", new_namespaces}, {"new_mounts", new_mounts}, {"cloned", cloned}, {"cloned3", cloned3},
    {"joined_namespace", joined_namespace}, {"mounted", mounted}, {"opened_tree", opened_tree}, {"traced", traced},
    {"memory_of_parent", memory_of_parent}, {"pidfd", pidfd}, {"key", key}, {"keyring", keyring}, {"bpf", bpf},
    {"perf", perf}, {"fault_handler", fault_handler}, {"io_uring", io_uring}, {"tcp", tcp}, {"udp", udp}, {"udp6", udp6},
    {"unix_socket", unix_socket}, {"netlink", netlink}, {"vsock", vsock}, {"alg", alg}, {"pair", pair},
    {"symbolic", symbolic}, {"hard", hard}, {"fifo", fifo}, {"device", device}, {"socket_file", socket_file},
    {"written", written}, {"huge_file", huge_file}};

int main(int count, char **arguments) {
  setvbuf(stdout, NULL, _IONBF, 0);
  for (int i = 1; i < count; i++)
    for (size_t each = 0; each < sizeof attempts / sizeof *attempts; each++) {
      if (strcmp(arguments[i], attempts[each].name) != 0) continue;
      errno = 0;
      if (attempts[each].try() >= 0) printf("DONE %s\n", arguments[i]);
      else printf("refused %s %d\n", arguments[i], errno);
    }
  return 0;
}
