//go:build !podprogram

// The pause process is PID 1 of the PID namespace that a pod's containers share.
#define _GNU_SOURCE
#include "pod.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"

// enter_empty_root gives the process an empty root: a container that shares its PID namespace and
// may trace can reach everything below /proc/1/root.
static void enter_empty_root(void) {
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0)
		podrun_die("make a mount namespace for the pause process");
	if (mount("tmpfs", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=1") < 0 || chdir("/proc") < 0)
		podrun_die("make an empty root for the pause process");
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		podrun_die("enter the empty root of the pause process");
}

// join_namespaces joins the pod's namespaces, the descriptors from PODRUN_FD_PAUSE on: /proc/1 is
// visible to all containers, and it shows the network, too.
static void join_namespaces(void) {
	for (int fd = PODRUN_FD_PAUSE; setns(fd, 0) == 0; fd++)
		;
	if (errno != EBADF)
		podrun_die("enter the pod's namespaces with the pause process");
}

static __attribute__((noreturn)) void pause_process(void) {
	sigset_t set;
	podrun_block_signals(&set, NULL);
	join_namespaces();
	enter_empty_root();
	podrun_drop_privileges();
	prctl(PR_SET_NAME, PODRUN_COMM_PAUSE, 0, 0, 0);
	podrun_close_from(PODRUN_FD_PAUSE);
	podrun_drop_program_pages();
	for (;;) {
		int sig;
		sigwait(&set, &sig);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

// start_in_userns starts a pause process in a user namespace, as a child of the caller's
// parent, and writes its pid to standard output.
static __attribute__((noreturn)) void start_in_userns(int userns) {
	if (setns(userns, CLONE_NEWUSER) < 0 || setresuid(0, 0, 0) < 0)
		podrun_die("join the pod's own user namespace");
	close(userns);
	pid_t pause = syscall(SYS_clone, CLONE_PARENT | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (pause < 0)
		podrun_die("make a shared PID namespace");
	if (pause == 0) {
		close(STDOUT_FILENO); // a reader there waits for end of file
		pause_process();
	}
	_exit(dprintf(STDOUT_FILENO, "%d", pause) < 0);
}

void podrun_pause(void) {
	if (podrun_env_fd(PODRUN_ENV_USER_NS) >= 0)
		start_in_userns(podrun_env_fd(PODRUN_ENV_USER_NS));
	pause_process();
}
