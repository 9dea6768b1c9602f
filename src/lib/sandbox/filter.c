/*
 * The system call filter (seccomp(2)) of the launcher: it refuses what a media program never needs and what would leave
 * the sandbox, or its limits. Everything else is allowed, because the list of what encoders and C libraries use changes.
 *
 * - New namespaces, mounts, other processes' memory, keys, BPF, io_uring: the parts of the kernel with the most faults.
 * - Sockets of every family. Landlock knows TCP only; standard input and output may be sockets, and stay usable.
 * - Links and special files: what reads the results would follow them, or wait for them.
 * - Shared memory that is no file: RLIMIT_DATA does not count it.
 * - Processes: none for a program, a limited number for a script. Threads are no processes.
 */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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
  NR_FSOPEN, NR_FSCONFIG, NR_FSMOUNT, NR_FSPICK, NR_PIDFD_OPEN, NR_CLONE3, NR_PIDFD_GETFD = 438, NR_MOUNT_SETATTR = 442,
  NR_QUOTACTL_FD, NR_MEMFD_SECRET = 447, NR_OPEN_TREE_ATTR = 467
};

static const int refused[] = {
    /* Namespaces and mounts. */
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, NR_OPEN_TREE, NR_OPEN_TREE_ATTR,
    NR_MOVE_MOUNT, NR_FSOPEN, NR_FSCONFIG, NR_FSMOUNT, NR_FSPICK, NR_MOUNT_SETATTR, SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    /* Other processes. */
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, NR_PIDFD_OPEN, NR_PIDFD_GETFD,
    NR_PIDFD_SEND_SIGNAL,
    /* Parts of the kernel that no media program uses. */
    SYS_keyctl, SYS_add_key, SYS_request_key, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, NR_IO_URING_SETUP,
    NR_IO_URING_ENTER, NR_IO_URING_REGISTER, SYS_fanotify_init, SYS_quotactl, NR_QUOTACTL_FD, SYS_acct, SYS_swapon,
    SYS_swapoff, SYS_reboot, SYS_syslog, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load,
    SYS_vhangup, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname,
    SYS_setdomainname,
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
    SYS_socket, SYS_socketpair, SYS_shmget, SYS_shmat, SYS_semget, SYS_msgget, SYS_mq_open,
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

#define MAX_INSTRUCTIONS 512
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
static void answer_if(int number, uint32_t action) {
  emit(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
  answer(action);
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/*
 * A search in the sorted numbers, of which those from `from` to before `to` are left: the kernel evaluates the filter for
 * every system call when it is installed, and a list takes 0.3 ms of the start.
 */
static void search(const int *numbers, size_t from, size_t to) {
  if (to - from <= 3) {
    for (; from < to; from++) answer_if(numbers[from], with(EPERM));
    answer(SECCOMP_RET_ALLOW);
    return;
  }
  size_t middle = (from + to) / 2;
  unsigned short jump = length;
  emit(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)numbers[middle], 0, 0);
  search(numbers, from, middle);
  if (length - jump - 1 > UINT8_MAX) {
    errno = E2BIG;
    fail("filter");
  }
  instructions[jump].jt = (uint8_t)(length - jump - 1);
  search(numbers, middle, to);
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void build(uint32_t fork_action, int has_hardware) {
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
  emit(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 6);
  load_argument(0);
  emit(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1);
  answer(with(EPERM));
  emit(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
  answer(SECCOMP_RET_ALLOW);
  answer(fork_action);
  if (!has_hardware) {
    emit(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5);
    load_argument(3);
    emit(BPF_ALU | BPF_AND | BPF_K, SHARED_ANONYMOUS, 0, 0);
    emit(BPF_JMP | BPF_JEQ | BPF_K, SHARED_ANONYMOUS, 0, 1);
    answer(with(EPERM));
    answer(SECCOMP_RET_ALLOW);
  }
  int numbers[COUNT(refused) + COUNT(refused_without_hardware)];
  size_t count = COUNT(refused);
  memcpy(numbers, refused, sizeof refused);
  if (!has_hardware) {
    memcpy(numbers + count, refused_without_hardware, sizeof refused_without_hardware);
    count += COUNT(refused_without_hardware);
  }
  qsort(numbers, count, sizeof *numbers, by_number);
  search(numbers, 0, count);
}

void install_filter(enum forks forks, int has_hardware) {
  build(forks == COUNTED_FORKS ? SECCOMP_RET_ALLOW : with(EAGAIN), has_hardware);
  struct sock_fprog program = {length, instructions};
  /* A kernel that is built without filters has the other limits only. */
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0 && errno != EINVAL && errno != ENOSYS)
    fail("system call filter");
}
