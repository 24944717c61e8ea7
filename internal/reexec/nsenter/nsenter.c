// This constructor enters namespaces before the Go runtime has started its threads, because
// unshare(CLONE_NEWUSER) refuses a process with threads. The caller (package reexec) passes its
// instructions in the environment (PODRUN_ENV_ENTER and others of protocol.h). The constructor parses
// only numbers and paths that the caller has prepared.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "pod.h"
#include "userns.h"

// reset_signals unblocks all signals, and stops ignoring any, in a process that will be a container's first,
// whatever the supervisor and the caller that started the pod block or ignore. It queries the kernel directly, because the C
// library hides its own two signals, which a parent that used posix_spawn (make) leaves ignored.
static void reset_signals(void) {
	sigset_t none;
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		unsigned long act[8] = {0}; // the kernel's struct; the handler is first
		if (syscall(SYS_rt_sigaction, sig, NULL, act, 8) == 0 && act[0] == (unsigned long)SIG_IGN) {
			unsigned long standard[8] = {0};
			syscall(SYS_rt_sigaction, sig, standard, NULL, 8);
		}
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

__attribute__((constructor(101))) static void podrun_nsenter(int argc, char **argv) {
	(void)argc;
	const char *what = podrun_env(PODRUN_ENV_ENTER);
	if (getenv("_LIBCONTAINER_INITPIPE")) {
		reset_signals();
		return;
	}
	if (!*what)
		return;
	int net = !strcmp(what, PODRUN_ENTER_USER_NS_NET);
	if (!net && strcmp(what, PODRUN_ENTER_USER_NS)) {
		if (!podrun_pod_program)
			podrun_die_text("the pod program is a program of its own");
		podrun_pod_program(argv);
	}
	podrun_become_root(CLONE_NEWNS);
	if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
		podrun_die("detach the mount namespace");
	if (net && unshare(CLONE_NEWNET) < 0)
		podrun_die("make a network namespace");
	podrun_clear_env();
}
