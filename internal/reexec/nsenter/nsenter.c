// This constructor enters namespaces before the Go runtime has started its threads, because
// unshare(CLONE_NEWUSER) refuses a process with threads. The caller (package reexec) passes its
// instructions in the environment (ENV_ENTER and others of protocol.h). The constructor parses
// only numbers and paths that the caller has prepared.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nsenter.h"

static int report_fd = 2; // descriptor for fatal errors
static int fatal = 125;   // exit code after a fatal error

void podrun_report_to(int fd) { report_fd = fd; }

void podrun_set_exit_code(int code) { fatal = code; }

void podrun_die(const char *what) {
	dprintf(report_fd, "%s: %s\n", what, strerror(errno));
	_exit(fatal);
}

static void die_text(const char *text) {
	dprintf(report_fd, "%s\n", text);
	_exit(125);
}

static void write_file(const char *path, const char *text) {
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		podrun_die(path);
	close(fd);
}

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
	dup2(report_fd, 2);
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
			die_text("map the subordinate ids: newuidmap or newgidmap failed");
	} else {
		write_file("/proc/self/setgroups", "deny");
		write_file("/proc/self/uid_map", uidmap);
		write_file("/proc/self/gid_map", gidmap);
	}
}

// join_user_namespace enters the user namespace of the user's other pods.
static void join_user_namespace(int fd) {
	if (setns(fd, CLONE_NEWUSER) < 0)
		podrun_die("join the user namespace of the other pods");
	close(fd);
}

// limit_inotify keeps a quarter of the user's inotify instances and watches for the user's other programs: what
// pods use counts for the user, too. The limits apply to each id of the user namespace. Where /proc/sys is
// read-only, as in a container, they cannot be set.
static void limit_inotify(void) {
	static const char *const limits[][2] = {
		{"/proc/sys/fs/inotify/max_user_instances", "/proc/sys/user/max_inotify_instances"},
		{"/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches"},
	};
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		char text[32] = "";
		int of = open(limits[i][0], O_RDONLY | O_CLOEXEC), fd = open(limits[i][1], O_WRONLY | O_CLOEXEC);
		if (of >= 0 && fd >= 0 && read(of, text, sizeof text - 1) > 0)
			dprintf(fd, "%ld", atol(text) - atol(text) / 4);
		close(of);
		close(fd);
	}
}

static const char *env(const char *name) {
	const char *v = getenv(name);
	return v ? v : "";
}

// env_fd returns the number of a descriptor, or -1.
static int env_fd(const char *name) {
	const char *v = env(name);
	return *v ? atoi(v) : -1;
}

// become_root enters the user namespace, unless the caller is root, and makes a mount namespace. A
// pod gets none here: each pod init makes its own.
static void become_root(int pod) {
	if (geteuid() == 0) {
		if (!pod && unshare(CLONE_NEWNS) < 0)
			podrun_die("make a mount namespace");
		return;
	}
	int joined = env_fd(ENV_USER_NS);
	if (joined >= 0) {
		join_user_namespace(joined);
		if (!pod && unshare(CLONE_NEWNS) < 0)
			podrun_die("make a mount namespace");
	} else
		enter_user_namespace(pod ? 0 : CLONE_NEWNS, env(ENV_UID_MAP), env(ENV_GID_MAP), env(ENV_ID_TOOLS));
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		podrun_die("become root of the user namespace");
	if (joined < 0 && pod)
		limit_inotify();
}

void podrun_clear_env(void) {
	static const char *names[] = {ENV_ENTER, ENV_UID_MAP, ENV_GID_MAP, ENV_ID_TOOLS, ENV_HOSTNAME, ENV_GATE, ENV_USER_NS, ENV_ROUTER, ENV_OWN_USER_NS, ENV_HOST_PID};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unsetenv(names[i]);
}

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

// wait_gate waits until the caller has put this process into the pod's cgroup, which every process
// of the pod inherits. If the caller has gone, the process exits.
static void wait_gate(const char *number) {
	char c;
	ssize_t n;
	if (!*number)
		return;
	int fd = atoi(number);
	while ((n = read(fd, &c, 1)) < 0 && errno == EINTR)
		;
	if (n != 1)
		_exit(125);
	close(fd);
}

__attribute__((constructor(101))) static void podrun_nsenter(int argc, char **argv) {
	(void)argc;
	mallopt(M_ARENA_MAX, 1); // Go does not use malloc; without this each of its threads maps 128 MB for it
	const char *what = env(ENV_ENTER);
	if (getenv("_LIBCONTAINER_INITPIPE")) {
		reset_signals();
		return;
	}
	if (!*what)
		return;
	if (!strcmp(what, ENTER_PAUSE) && env_fd(ENV_USER_NS) >= 0)
		podrun_pause_in_userns(env_fd(ENV_USER_NS));
	if (!strcmp(what, ENTER_PAUSE))
		podrun_pause();
	if (!strcmp(what, ENTER_UNIT_LOOP))
		podrun_unit_loop(argv, env(ENV_UNIT_LOOP));
	int pod = !strcmp(what, ENTER_POD), prespawn = !strcmp(what, ENTER_PRESPAWN);
	if (pod)
		report_fd = FD_REPORT;
	become_root(pod || prespawn);
	if (prespawn)
		podrun_prespawn();
	if (!pod && mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
		podrun_die("detach the mount namespace");
	if (!strcmp(what, ENTER_USER_NS_NET) && unshare(CLONE_NEWNET) < 0)
		podrun_die("make a network namespace");
	if (pod) {
		// Isolate the pod from the keys of the user's session. One keyring for the pod is enough:
		// libcontainer would make one for each container, and the kernel lets a user have 200.
		if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
			podrun_die("make the pod's keyring");
		wait_gate(env(ENV_GATE));
		podrun_monitor(argv, env(ENV_HOSTNAME), env_fd(ENV_ROUTER), env(ENV_OWN_USER_NS)); // returns in supervisors only
	}
	podrun_clear_env();
}
