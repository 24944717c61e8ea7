//go:build !podprogram

// A pod in the host's PID namespace has processes that the kernel does not end with the pod init.
// Its monitor and its pod init are subreapers instead: a process whose parent exits becomes their
// child. Killing the children, and then the children that they leave, kills all descendants.
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"

void podrun_become_subreaper(void) {
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		podrun_die("become the reaper of the pod's processes");
}

// kill_children kills every current child. A pid cannot be reused meanwhile, because this process
// has not reaped the child.
static void kill_children(void) {
	DIR *all = opendir("/proc");
	struct dirent *e;
	struct podrun_stat st;
	while (all && (e = readdir(all)))
		if (isdigit((unsigned char)e->d_name[0]) && podrun_read_stat(e->d_name, &st) && st.ppid == getpid())
			kill(st.pid, SIGKILL);
	if (all)
		closedir(all);
}

void podrun_kill_descendants(void) {
	do
		kill_children();
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}
