// The user namespace that the user's pods and the helpers of the Go programs live in.
#define _GNU_SOURCE
#include "userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"

// run_idtool starts newuidmap or newgidmap on target with the numbers of map.
static pid_t run_idtool(const char *dir, const char *tool, pid_t target, const char *map) {
	pid_t child = fork();
	if (child != 0)
		return child;
	char path[4096], pid[16], words[4096], *argv[128], *save, *w;
	int n = 0;
	snprintf(path, sizeof path, "%s/%s", dir, tool);
	snprintf(pid, sizeof pid, "%d", target);
	snprintf(words, sizeof words, "%s", map);
	argv[n++] = path;
	argv[n++] = pid;
	for (w = strtok_r(words, " ", &save); w && n < 127; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	argv[n] = NULL;
	dup2(podrun_report_fd(), 2);
	execv(path, argv);
	dprintf(2, "run %s: %s\n", path, strerror(errno));
	_exit(127);
}

static int exited_zero(pid_t pid) {
	int st;
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return 0;
	return st == 0;
}

// enter_user_namespace makes a user namespace and the namespaces of the flags in with.
static void enter_user_namespace(int with, const char *uidmap, const char *gidmap, const char *tools) {
	int go[2];
	pid_t helper = -1, me = getpid();
	if (*tools) {
		if (pipe2(go, O_CLOEXEC) < 0)
			podrun_die("make pipe");
		if ((helper = fork()) < 0)
			podrun_die("fork");
		if (helper == 0) { // it stays outside the new namespace: from inside, the set-id tools could not write the maps
			char c;
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(go[1]);
			if (read(go[0], &c, 1) != 1)
				_exit(1);
			pid_t u = run_idtool(tools, "newuidmap", me, uidmap);
			pid_t g = run_idtool(tools, "newgidmap", me, gidmap);
			int ok = exited_zero(u);
			_exit(!(exited_zero(g) && ok));
		}
		close(go[0]);
	}
	if (unshare(CLONE_NEWUSER | with) < 0)
		podrun_die("make a user namespace");
	if (*tools) {
		if (write(go[1], "x", 1) != 1)
			podrun_die("start newuidmap");
		close(go[1]);
		if (!exited_zero(helper))
			podrun_die_text("map the subordinate ids: newuidmap or newgidmap failed");
	} else {
		podrun_write_file("/proc/self/setgroups", "deny", "/proc/self/setgroups");
		podrun_write_file("/proc/self/uid_map", uidmap, "/proc/self/uid_map");
		podrun_write_file("/proc/self/gid_map", gidmap, "/proc/self/gid_map");
	}
}

// join_user_namespace enters the user namespace of the user's other pods.
static void join_user_namespace(int fd) {
	if (setns(fd, CLONE_NEWUSER) < 0)
		podrun_die("join the user namespace of the other pods");
	close(fd);
}

int podrun_become_root(int with) {
	if (geteuid() == 0) {
		if (with && unshare(with) < 0)
			podrun_die("make a mount namespace");
		return 0;
	}
	int joined = podrun_env_fd(PODRUN_ENV_USER_NS);
	if (joined >= 0) {
		join_user_namespace(joined);
		if (with && unshare(with) < 0)
			podrun_die("make a mount namespace");
	} else
		enter_user_namespace(with, podrun_env(PODRUN_ENV_UID_MAP), podrun_env(PODRUN_ENV_GID_MAP), podrun_env(PODRUN_ENV_ID_TOOLS));
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		podrun_die("become root of the user namespace");
	return joined < 0;
}
