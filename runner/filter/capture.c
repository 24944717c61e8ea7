// libcontainer compiles a profile and loads the result in one step. Here the load is intercepted: a filter
// of this program's own, on this thread, turns it into a signal, whose handler finds the compiled program
// where the kernel would have read it. So the stored filter equals to the byte what libcontainer would have
// loaded.
//
// This file stands beside the Go code that calls it, not with the C of the tree internal/reexec: it is a function of a
// process in which Go runs, not what runs before Go or in its place.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "capture.h"

#if defined(__x86_64__)
#define ARGUMENT(c, n) ((c)->uc_mcontext.gregs[(n) == 0 ? REG_RDI : (n) == 1 ? REG_RSI : REG_RDX])
#elif defined(__aarch64__)
#define ARGUMENT(c, n) ((c)->uc_mcontext.regs[n])
#elif defined(__arm__)
#define ARGUMENT(c, n) ((&(c)->uc_mcontext.arm_r0)[n])
#elif defined(__riscv)
#define ARGUMENT(c, n) ((c)->uc_mcontext.__gregs[REG_A0 + (n)])
#else
#error "filters are captured on amd64, arm64, armv7 and riscv64"
#endif

static void put(const void *p, size_t n) {
	while (n) {
		ssize_t done = write(1, p, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			_exit(1);
		p = (const char *)p + done;
		n -= done;
	}
}

static void caught(int sig, siginfo_t *info, void *context) {
	ucontext_t *c = context;
	const struct sock_fprog *f = (const void *)(unsigned long)ARGUMENT(c, 2);
	unsigned head[2] = {info->si_syscall == SYS_seccomp ? ARGUMENT(c, 1) : 0, f->len};
	(void)sig;
	put(head, sizeof head);
	put(f->filter, f->len * sizeof *f->filter);
	_exit(0);
}

#define UNLESS_CALL(name, then) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, then)
#define LOAD(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]))
#define UNLESS(value, then) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, then)
#define IF(value, then) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, 0)

int podrun_capture(void) {
	// The supported machines are little-endian: the first half of an argument is the lower one. Queries to
	// the kernel (libseccomp's, about flags) have no program and pass.
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		UNLESS_CALL(seccomp, 5), LOAD(0), UNLESS(SECCOMP_SET_MODE_FILTER, 8), LOAD(2), IF(0, 6), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		UNLESS_CALL(prctl, 4), LOAD(0), UNLESS(PR_SET_SECCOMP, 2), LOAD(1), IF(SECCOMP_MODE_FILTER, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	};
	struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
	struct sigaction act = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	if (sigaction(SIGSYS, &act, NULL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return errno;
	return 0;
}
