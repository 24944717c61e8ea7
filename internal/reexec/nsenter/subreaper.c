// A pod in the host's PID namespace has processes that the kernel does not end with the pod init.
// Its monitor and its pod init are subreapers instead: a process whose parent exits becomes their
// child. Killing the children, and then the children that they leave, kills all descendants.
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "podinit.h"

void podrun_become_subreaper(void) {
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		podrun_die("become the reaper of the pod's processes");
}

// parent_of returns the parent of a process, or -1.
static int parent_of(const char *pid) {
	char path[64], text[512], *rest;
	int parent = -1;
	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	text[n] = 0;
	if (f)
		fclose(f);
	if ((rest = strrchr(text, ')')))
		sscanf(rest + 1, " %*c %d", &parent);
	return parent;
}

// kill_children kills every current child. A pid cannot be reused meanwhile, because this process
// has not reaped the child.
static void kill_children(void) {
	DIR *all = opendir("/proc");
	struct dirent *e;
	while (all && (e = readdir(all)))
		if (isdigit((unsigned char)e->d_name[0]) && parent_of(e->d_name) == getpid())
			kill(atoi(e->d_name), SIGKILL);
	if (all)
		closedir(all);
}

void podrun_kill_descendants(void) {
	do
		kill_children();
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}
