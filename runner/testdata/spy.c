// spy inspects every visible process, as fast as it can, until end of file on its input. It prints what it
// gets of those that run podrun's own program: their attributes, their descriptors, and whether they can be
// traced or their program can be written to.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void links(int pid, const char *what) {
	char path[64], target[256];
	snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
	ssize_t n = readlink(path, target, sizeof target - 1);
	if (n < 0)
		return;
	target[n] = 0;
	printf("%s %.*s\n", *what == 'f' ? "fd" : what, (int)strcspn(target, ":"), target);
}

static void look(int pid) {
	char path[64], target[256];
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	ssize_t n = readlink(path, target, sizeof target - 1);
	if (n < 0)
		return;
	target[n] = 0;
	if (!strstr(target, "podrun") && !strstr(target, "runc"))
		return;
	printf("exe %s\n", target);
	int fd = open(path, O_WRONLY);
	if (fd >= 0) { // by now it may be the container's own program
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if ((n = readlink(path, target, sizeof target - 1)) > 0 && (target[n] = 0, strstr(target, "podrun") != NULL) && write(fd, "x", 1) == 1)
			printf("written to\n");
		close(fd);
	}
	links(pid, "cwd");
	links(pid, "root");
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));)
		if (*e->d_name != '.') {
			char name[300];
			snprintf(name, sizeof name, "fd/%s", e->d_name);
			links(pid, name);
		}
	if (d)
		closedir(d);
}

int main(int argc, char **argv) {
	struct pollfd in = {0, POLLIN, 0};
	int trace = argc > 1 && !strcmp(argv[1], "trace"), looks = 0;
	printf("looking\n");
	fflush(stdout);
	do {
		DIR *d = opendir("/proc");
		for (struct dirent *e; d && (e = readdir(d));) {
			int pid = atoi(e->d_name);
			if (pid < 2 || pid == getpid())
				continue;
			if (trace) {
				if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
					continue;
				look(pid); // it can be traced: check its owner
				ptrace(PTRACE_INTERRUPT, pid, 0, 0);
				waitpid(pid, NULL, __WALL);
				ptrace(PTRACE_DETACH, pid, 0, 0);
			} else {
				look(pid);
			}
		}
		closedir(d);
		looks++;
	} while (poll(&in, 1, 0) == 0);
	printf("looked %d\n", looks > 0); // the number depends on the load of the processors
	return 0;
}
