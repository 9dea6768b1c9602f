/*
 * The system call filter (seccomp(2)) of the launcher: it refuses what a media program never needs and what would leave
 * the sandbox, or its limits. Everything else is allowed, because the list of what encoders and C libraries use changes.
 *
 * - New namespaces, mounts, other processes' memory, keys, BPF, io_uring: the parts of the kernel with the most faults.
 * - Sockets of every family. Landlock knows TCP only; standard input and output may be sockets, which can be read and
 *   written, but not bound, connected or used to pass descriptors.
 * - Other processes of the user, which the kernel protects by their user id only: signals (also those that the kernel sends
 *   for a descriptor, fcntl(2) F_SETOWN), resource limits, priorities and processors. Without a PID namespace the server is
 *   one of them, and the supervisor of the launcher always is.
 * - Links and special files: what reads the results would follow them, or wait for them.
 * - Memory that RLIMIT_DATA does not count: shared memory that is no file, and stacks (MAP_GROWSDOWN, and mremap of the
 *   stack).
 * - Processes: none for a program, a limited number for a script. Threads are no processes; the supervisor counts them.
 */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "The filter has no system call numbers for this architecture."
#endif

/* Numbers that older headers do not have; from 424 on they are the same on all architectures. */
enum {
  NR_PIDFD_SEND_SIGNAL = 424, NR_IO_URING_SETUP, NR_IO_URING_ENTER, NR_IO_URING_REGISTER, NR_OPEN_TREE, NR_MOVE_MOUNT,
  NR_FSOPEN, NR_FSCONFIG, NR_FSMOUNT, NR_FSPICK, NR_PIDFD_OPEN, NR_CLONE3, NR_PIDFD_GETFD = 438, NR_PROCESS_MADVISE = 440,
  NR_MOUNT_SETATTR = 442, NR_QUOTACTL_FD, NR_MEMFD_SECRET = 447, NR_PROCESS_MRELEASE, NR_OPEN_TREE_ATTR = 467
};

static const int refused[] = {
    /* Namespaces and mounts. */
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, NR_OPEN_TREE, NR_OPEN_TREE_ATTR,
    NR_MOVE_MOUNT, NR_FSOPEN, NR_FSCONFIG, NR_FSMOUNT, NR_FSPICK, NR_MOUNT_SETATTR, SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    /* Other processes. */
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, NR_PIDFD_OPEN, NR_PIDFD_GETFD,
    NR_PIDFD_SEND_SIGNAL, NR_PROCESS_MADVISE, NR_PROCESS_MRELEASE, SYS_migrate_pages, SYS_move_pages,
    /* Parts of the kernel that no media program uses. */
    SYS_keyctl, SYS_add_key, SYS_request_key, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, NR_IO_URING_SETUP,
    NR_IO_URING_ENTER, NR_IO_URING_REGISTER, SYS_fanotify_init, SYS_quotactl, NR_QUOTACTL_FD, SYS_acct, SYS_swapon,
    SYS_swapoff, SYS_reboot, SYS_syslog, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load,
    SYS_vhangup, SYS_io_setup, SYS_inotify_init1, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname,
    SYS_setdomainname,
#ifdef SYS_inotify_init
    SYS_inotify_init,
#endif
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_ioperm
    SYS_ioperm, SYS_iopl,
#endif
#ifdef SYS_modify_ldt
    SYS_modify_ldt,
#endif
    /* Sockets and other channels between processes. */
    SYS_socket, SYS_socketpair, SYS_bind, SYS_listen, SYS_connect, SYS_accept, SYS_accept4, SYS_setsockopt, SYS_sendmsg,
    SYS_sendmmsg, SYS_shmget, SYS_shmat, SYS_semget, SYS_msgget, SYS_mq_open,
    /* A larger stack. C libraries allocate and copy instead. */
    SYS_mremap,
    /* Links and special files. */
    SYS_symlinkat, SYS_linkat, SYS_mknodat,
#ifdef SYS_symlink
    SYS_symlink, SYS_link, SYS_mknod,
#endif
};
/* Drivers of hardware encoders share memory with the kernel. */
static const int refused_without_hardware[] = {SYS_memfd_create, NR_MEMFD_SECRET};

#define NEW_NAMESPACES                                                                                     \
  (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define SHARED_ANONYMOUS (MAP_SHARED | MAP_ANONYMOUS)

/* System calls that are allowed for the caller itself. The kernel reads ids as 32 bits, so the low half decides. */
enum rule {
  REFUSED,
  /* The first argument is the process. A process id of 0 or less would be a process group. */
  OWN_PROCESS,
  /* The first argument is the process or thread; 0: the calling thread. */
  OWN_OR_ZERO,
  /* The same for the second argument; the first says that it is no process group and no user. */
  OWN_PRIORITY,
  OWN_IO_PRIORITY,
  /* All commands but some. */
  NO_SIGNAL_OWNER,
  NO_SIGNAL_OWNER_IOCTL,
  KILLED_WITH_PARENT
};
struct rule_of { int number; enum rule rule; };

/* Signals: from a script also to its own processes, where something else keeps them inside. */
static const struct rule_of signals[] = {
    {SYS_kill, OWN_PROCESS}, {SYS_tkill, OWN_PROCESS}, {SYS_tgkill, OWN_PROCESS}, {SYS_rt_sigqueueinfo, OWN_PROCESS},
    {SYS_rt_tgsigqueueinfo, OWN_PROCESS}};
static const struct rule_of conditional[] = {
    {SYS_prlimit64, OWN_OR_ZERO}, {SYS_sched_setaffinity, OWN_OR_ZERO}, {SYS_sched_setscheduler, OWN_OR_ZERO},
    {SYS_sched_setparam, OWN_OR_ZERO}, {SYS_sched_setattr, OWN_OR_ZERO}, {SYS_setpriority, OWN_PRIORITY},
    {SYS_ioprio_set, OWN_IO_PRIORITY}, {SYS_fcntl, NO_SIGNAL_OWNER}, {SYS_ioctl, NO_SIGNAL_OWNER_IOCTL},
    {SYS_prctl, KILLED_WITH_PARENT}};
#define IOPRIO_WHO_PROCESS 1

#define MAX_INSTRUCTIONS 1024
static struct sock_filter instructions[MAX_INSTRUCTIONS];
static unsigned short length;

static void emit(uint16_t code, uint32_t k, uint8_t yes, uint8_t no) {
  if (length == MAX_INSTRUCTIONS) {
    errno = E2BIG;
    fail("filter");
  }
  instructions[length++] = (struct sock_filter){code, yes, no, k};
}
static void load(size_t offset) { emit(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0); }
/* The low half of an argument; both architectures are little-endian. */
static void load_argument(int index) { load(offsetof(struct seccomp_data, args) + 8 * (size_t)index); }
static void answer(uint32_t action) { emit(BPF_RET | BPF_K, action, 0, 0); }
static uint32_t with(int error) { return SECCOMP_RET_ERRNO | (uint32_t)error; }
static void answer_if(uint32_t value, uint32_t action) {
  emit(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
  answer(action);
}
static void answer_unless(uint32_t value, uint32_t action) {
  emit(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
  answer(action);
}

static void only_own(int argument, int is_zero_own) {
  load_argument(argument);
  if (is_zero_own) answer_if(0, SECCOMP_RET_ALLOW);
  answer_if((uint32_t)getpid(), SECCOMP_RET_ALLOW);
  answer(with(EPERM));
}

/* Answers a call that has the rule, by its arguments. */
static void decide(enum rule rule) {
  switch (rule) {
    case REFUSED: return answer(with(EPERM));
    case OWN_PROCESS: return only_own(0, 0);
    case OWN_OR_ZERO: return only_own(0, 1);
    case OWN_PRIORITY:
    case OWN_IO_PRIORITY:
      load_argument(0);
      answer_unless(rule == OWN_PRIORITY ? PRIO_PROCESS : IOPRIO_WHO_PROCESS, with(EPERM));
      return only_own(1, 1);
    case NO_SIGNAL_OWNER:
      load_argument(1);
      for (const int *one = (const int[]){F_SETOWN, F_SETOWN_EX, F_SETSIG, 0}; *one; one++)
        answer_if((uint32_t)*one, with(EPERM));
      return answer(SECCOMP_RET_ALLOW);
    case NO_SIGNAL_OWNER_IOCTL:
      load_argument(1);
      for (const int *one = (const int[]){FIOSETOWN, SIOCSPGRP, 0}; *one; one++)
        answer_if((uint32_t)*one, with(EPERM));
      return answer(SECCOMP_RET_ALLOW);
    case KILLED_WITH_PARENT:
      load_argument(0);
      answer_unless(PR_SET_PDEATHSIG, SECCOMP_RET_ALLOW);
      load_argument(1);
      answer_if(SIGKILL, SECCOMP_RET_ALLOW);
      return answer(with(EPERM));
  }
}

static int by_number(const void *a, const void *b) {
  return ((const struct rule_of *)a)->number - ((const struct rule_of *)b)->number;
}

/* A jump over what is emitted next; `end_jump` says where it ends. */
static unsigned short begin_jump(uint16_t condition, uint32_t value) {
  emit(BPF_JMP | condition | BPF_K, value, 0, 0);
  return length;
}
static uint8_t jump_from(unsigned short from) {
  if (length - from > UINT8_MAX) {
    errno = E2BIG;
    fail("filter");
  }
  return (uint8_t)(length - from);
}

/*
 * A search in the sorted rules, of which those from `from` to before `to` are left: the kernel evaluates the filter for
 * every system call when it is installed, and a list takes 0.3 ms of the start.
 */
static void search(const struct rule_of *rules, size_t from, size_t to) {
  if (to - from <= 3) {
    for (; from < to; from++) {
      unsigned short other = begin_jump(BPF_JEQ, (uint32_t)rules[from].number);
      decide(rules[from].rule);
      instructions[other - 1].jf = jump_from(other);
    }
    answer(SECCOMP_RET_ALLOW);
    return;
  }
  size_t middle = (from + to) / 2;
  /* A conditional jump reaches 255 instructions. */
  emit(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)rules[middle].number, 0, 1);
  emit(BPF_JMP | BPF_JA, 0, 0, 0);
  unsigned short lower = length;
  search(rules, from, middle);
  instructions[lower - 1].k = (uint32_t)(length - lower);
  search(rules, middle, to);
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Frequent calls whose answer depends on `forks` or the devices come first, the others are searched. */
static void build(enum forks forks, int is_contained, int has_hardware) {
  uint32_t fork_action = forks == COUNTED_FORKS ? SECCOMP_RET_ALLOW : with(EAGAIN);
  length = 0;
  load(offsetof(struct seccomp_data, arch));
  emit(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
  answer(SECCOMP_RET_KILL_PROCESS);
  load(offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
  emit(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
  answer(with(ENOSYS));
#endif
  /* Its flags are in memory, which a filter cannot read; C libraries then use clone. */
  answer_if(NR_CLONE3, with(ENOSYS));
#ifdef SYS_fork
  answer_if(SYS_fork, fork_action);
  answer_if(SYS_vfork, fork_action);
#endif
  unsigned short no_clone = begin_jump(BPF_JEQ, SYS_clone);
  load_argument(0);
  emit(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1);
  answer(with(EPERM));
  emit(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
  answer(SECCOMP_RET_ALLOW);
  answer(fork_action);
  instructions[no_clone - 1].jf = jump_from(no_clone);
  unsigned short no_mmap = begin_jump(BPF_JEQ, SYS_mmap);
  load_argument(3);
  emit(BPF_JMP | BPF_JSET | BPF_K, MAP_GROWSDOWN, 0, 1);
  answer(with(EPERM));
  if (!has_hardware) {
    emit(BPF_ALU | BPF_AND | BPF_K, SHARED_ANONYMOUS, 0, 0);
    answer_if(SHARED_ANONYMOUS, with(EPERM));
  }
  answer(SECCOMP_RET_ALLOW);
  instructions[no_mmap - 1].jf = jump_from(no_mmap);

  struct rule_of rules[COUNT(refused) + COUNT(refused_without_hardware) + COUNT(conditional) + COUNT(signals)];
  size_t count = 0;
  for (size_t i = 0; i < COUNT(refused); i++) rules[count++] = (struct rule_of){refused[i], REFUSED};
  for (size_t i = 0; !has_hardware && i < COUNT(refused_without_hardware); i++)
    rules[count++] = (struct rule_of){refused_without_hardware[i], REFUSED};
  for (size_t i = 0; i < COUNT(conditional); i++) rules[count++] = conditional[i];
  for (size_t i = 0; (forks == NO_FORKS || !is_contained) && i < COUNT(signals); i++) rules[count++] = signals[i];
  qsort(rules, count, sizeof *rules, by_number);
  search(rules, 0, count);
}

void install_filter(enum forks forks, int is_contained, int has_hardware) {
  build(forks, is_contained, has_hardware);
  struct sock_fprog program = {length, instructions};
  /* A kernel that is built without filters has the other limits only. */
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0 && errno != EINVAL && errno != ENOSYS)
    fail("system call filter");
}
