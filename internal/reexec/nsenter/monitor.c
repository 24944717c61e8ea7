//go:build !podprogram

// The monitor makes a pod outlive its pod init. It is the pod init's parent, runs in the host's PID
// and mount namespaces, holds the pod's lock and the router's network namespace, and otherwise only
// waits. When the pod init is killed, the kernel kills everything in the sandbox. The monitor then
// starts another pod init, whose supervisor makes another sandbox as the kubelet would, or ends the
// pod (runner/recreate.go). A pod init that exits by itself ends the pod.
//
// A killed monitor matters only when its pod init is killed, too: then the pod has ended.
//
// The kernel does not end a pod in the host's PID namespace (hostPID). There monitor and pod init
// are subreapers, and the one that outlives the other ends the pod.
//
// The monitor removes a pod that is marked for removal (store.Pod.MarkRemoving) when its last pod
// init has ended, whether or not the command that requested it still runs. Usually the supervisor
// has removed all but the mark and the lock; otherwise the monitor executes a program for the rest.
#define _GNU_SOURCE
#include "pod.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init.h"
#include "start.h"

// make_router makes the network namespace that the pods of one user share.
static int make_router(void) {
	int pair[2], fd;
	char c, path[64];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		podrun_die("make a socket");
	pid_t maker = fork();
	if (maker < 0)
		podrun_die("fork");
	if (maker == 0) {
		close(pair[0]);
		if (unshare(CLONE_NEWNET) < 0)
			podrun_die("make the network namespace of the pods' router");
		_exit(write(pair[1], "x", 1) != 1 || read(pair[1], &c, 1) != 0);
	}
	close(pair[1]);
	if (read(pair[0], &c, 1) != 1)
		_exit(125); // the child has reported the error
	snprintf(path, sizeof path, "/proc/%d/ns/net", maker);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	close(pair[0]);
	waitpid(maker, NULL, 0);
	return fd;
}

// wait_init waits for the end of a pod init and passes stop signals on to it.
static int wait_init(struct podrun_pod *pod, pid_t init) {
	int sig, st;
	for (;;) {
		if (waitpid(init, &st, WNOHANG) == init)
			return st;
		if (sigwait(&pod->set, &sig) == 0 && podrun_is_stop(sig)) {
			pod->stop_asked = 1; // for the next pod init, should this one have no time to record it
			kill(init, sig);
		}
	}
}

// wait_delay waits before the next pod init starts, unless a stop is requested.
static void wait_delay(struct podrun_pod *pod, long long wait) {
	for (long long end = podrun_now() + wait; !pod->stop_asked && (wait = end - podrun_now()) > 0;) {
		struct timespec t = {wait / 1000000000, wait % 1000000000};
		pod->stop_asked = podrun_is_stop(sigtimedwait(&pod->set, NULL, &t));
	}
}

// close_unneeded closes the descriptors that the pod init has now and the monitor does not need.
static void close_unneeded(struct podrun_pod *pod) {
	podrun_place_fd(pod->router, PODRUN_FD_ROUTER);
	podrun_place_fd(pod->served, PODRUN_FD_SERVED);
	podrun_place_fd(pod->program, PODRUN_FD_PROGRAM);
	pod->router = PODRUN_FD_ROUTER;
	pod->served = PODRUN_FD_SERVED;
	pod->program = PODRUN_FD_PROGRAM;
	prctl(PR_SET_NAME, PODRUN_COMM_MONITOR, 0, 0, 0);
	podrun_report_to(2);
	for (int fd = PODRUN_FD_REPORT; fd < PODRUN_FD_SERVED; fd++)
		if (fd != PODRUN_FD_ROUTER)
			close(fd);
	podrun_close_from(PODRUN_FD_FREE);
	podrun_drop_program_pages();
}

// prepare_restart prepares the description of the next pod init after one was killed with wait status
// st.
static void prepare_restart(struct podrun_pod *pod, int st, long long wait) {
	dprintf(2, "podrun: the pod init was killed (status %d) with its sandbox; restarting in %lld.%lld s\n", st,
		wait / 1000000000, wait / 100000000 % 10);
	wait_delay(pod, wait);
	pod->restarted = 1;
	podrun_set_exit_code(1);
	unsetenv(PODRUN_ENV_NOTIFY); // descriptors of the first supervisor
	unsetenv(PODRUN_ENV_PORTS);
	unsetenv(PODRUN_ENV_RECORD);
	setenv(PODRUN_ENV_AFTER, PODRUN_AFTER_SANDBOX, 1);
	int null = open("/dev/null", O_WRONLY);
	if (null >= 0 && null != PODRUN_FD_REPORT) {
		dup2(null, PODRUN_FD_REPORT); // so that the number stays taken
		close(null);
	}
}

// has_only reports whether a directory contains no other files than two.
static int has_only(const char *path, const char *first, const char *second) {
	struct dirent *e;
	DIR *dir = opendir(path);
	int others = 0;
	while (dir && (e = readdir(dir)))
		others += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, first) && strcmp(e->d_name, second);
	if (dir)
		closedir(dir);
	return dir && !others;
}

// remove_with_parent removes a directory, and the namespace's directory if this was its last pod.
static void remove_with_parent(char *path) {
	rmdir(path);
	char *name = strrchr(path, '/');
	if (name) {
		*name = 0;
		rmdir(path);
	}
}

// read_link reads a symbolic link, and returns 0 if it cannot.
static int read_link(const char *path, char text[PATH_MAX]) {
	ssize_t n = readlink(path, text, PATH_MAX - 1);
	text[n < 0 ? 0 : n] = 0;
	return n > 0;
}

// finish_removal removes what is left of a pod that is marked for removal. argv has the arguments of a
// supervisor: program, re-exec entry point, data root, runtime root, namespace, name. The lock's
// path gives the data directory, which has a link to the runtime directory.
static void finish_removal(const struct podrun_pod *pod) {
	char **argv = pod->argv, data[PATH_MAX], runtime[PATH_MAX], lock[64];
	snprintf(lock, sizeof lock, "/proc/self/fd/%d", PODRUN_FD_LOCK);
	if (!read_link(lock, data))
		return;
	char *name = strrchr(data, '/');
	if (!name || strcmp(name, "/" PODRUN_FILE_LOCK)) // the lock has been deleted
		return;
	*name = 0;
	if (chdir(data) < 0 || !read_link(PODRUN_FILE_RUNTIME, runtime) || chdir(runtime) < 0 || access(PODRUN_FILE_REMOVING, F_OK) < 0)
		return;
	if (has_only(runtime, PODRUN_FILE_REMOVING, PODRUN_FILE_REMOVING) && has_only(data, PODRUN_FILE_LOCK, PODRUN_FILE_RUNTIME)) {
		unlink(PODRUN_FILE_REMOVING);
		remove_with_parent(runtime);
		if (chdir(data) == 0) {
			unlink(PODRUN_FILE_RUNTIME);
			unlink(PODRUN_FILE_LOCK);
		}
		remove_with_parent(data);
		return;
	}
	char entry[] = PODRUN_ENTRY_REMOVE_POD, *words[] = {argv[0], entry, argv[2], argv[3], argv[4], argv[5], NULL};
	if (chdir("/") < 0 || fcntl(PODRUN_FD_LOCK, F_SETFD, 0) < 0) // the program holds the lock meanwhile
		return;
	podrun_clear_env();
	sigprocmask(SIG_SETMASK, &pod->old_mask, NULL);
	podrun_execute(pod->program, words);
	dprintf(2, "podrun: remove the pod: %s\n", strerror(errno));
}

void podrun_monitor(char **argv) {
	const char *own_userns = podrun_env(PODRUN_ENV_OWN_USER_NS);
	podrun_report_to(PODRUN_FD_REPORT);
	// Isolate the pod from the keys of the user's session. One keyring for the pod is enough:
	// libcontainer would make one for each container, and the kernel lets a user have 200.
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		podrun_die("make the pod's keyring");
	pid_t monitor = fork();
	if (monitor < 0)
		podrun_die("fork the monitor");
	if (monitor > 0)
		_exit(0);

	struct podrun_stat self;
	if (!podrun_read_stat("self", &self))
		podrun_die("read /proc/self/stat");
	struct podrun_pod pod = {.argv = argv, .monitor_start = self.start, .hostname = podrun_env(PODRUN_ENV_HOSTNAME), .own_userns = *own_userns != 0, .ids = strcmp(own_userns, "1") ? own_userns : NULL};
	if ((pod.hostpid = getenv(PODRUN_ENV_HOST_PID) != NULL))
		podrun_become_subreaper();
	podrun_block_signals(&pod.set, &pod.old_mask);
	int program = open(podrun_env(PODRUN_ENV_SUPERVISOR), O_PATH | O_CLOEXEC); // it may be removed while the pod lives
	if (program < 0)
		podrun_die("open the supervisor program");
	pod.program = podrun_move_fd_up(program); // above the descriptors of a supervisor
	int router = podrun_env_fd(PODRUN_ENV_ROUTER);
	pod.router = podrun_move_fd_up(router >= 0 ? router : make_router());
	pod.served = podrun_move_fd_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	for (struct podrun_restarts restarts = {.max = 5000000000};;) { // short enough for a client that waits for the pod meanwhile
		long long born = podrun_now();
		eventfd_t served;
		int st = 0;
		pid_t init = syscall(SYS_clone, (pod.hostpid ? 0 : CLONE_NEWPID) | SIGCHLD, 0, 0, 0, 0);
		if (init == 0)
			podrun_start_init(&pod);
		if (init < 0 && !pod.restarted)
			podrun_die("make a PID namespace");
		if (init > 0) {
			close_unneeded(&pod);
			st = wait_init(&pod, init);
			if (pod.hostpid)
				podrun_kill_descendants();
			// The first pod init reports its errors itself. After a restart a failed one is restarted again.
			int lost = WIFEXITED(st) && WEXITSTATUS(st) == PODRUN_EXIT_SANDBOX_LOST;
			int in_order = WIFEXITED(st) && !lost && (!pod.restarted || WEXITSTATUS(st) == 0 || WEXITSTATUS(st) == PODRUN_EXIT_UNRECOVERABLE);
			if (in_order) {
				finish_removal(&pod);
				_exit(WEXITSTATUS(st));
			}
		}
		if (!pod.restarted && eventfd_read(PODRUN_FD_SERVED, &served) < 0)
			_exit(1); // the caller that starts the pod has received the error
		prepare_restart(&pod, st, podrun_restart_delay(&restarts, born));
	}
}
