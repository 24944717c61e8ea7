// The guard is why a pod outlives its keeper. It is the keeper's parent, in the host's PID
// and mount namespaces, holds the pod's lock and the router's network namespace, and does
// nothing but wait. When the keeper is killed, and by the kernel with it everything of the
// sandbox, the guard begins another, whose supervisor makes another sandbox as the kubelet
// would, or ends the pod (runner/rise.go). A keeper that ends by itself ends the pod.
//
// A guard that is killed is missed only when its keeper is, too: then the pod has ended.
//
// A pod in the host's PID namespace (hostPID) is not ended by the kernel. There guard and
// keeper adopt what descends from them, and who outlives the other ends it.
//
// A pod that is marked as leaving (store.Pod.MarkLeaving) is removed when its last keeper has
// ended, whether or not the command that asked for it still runs. Mostly its supervisor has
// removed all but the mark and the lock; else the guard executes a program for the rest.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#include "keeper.h"

// Keepers that are killed in a loop must not keep a board busy: after some quick deaths
// each next one waits for twice as long, but never so long that who asks for the pod meanwhile
// gives up.
static const long long quick = 10000000000, first_delay = 100000000, last_delay = 5000000000;
enum { free_deaths = 5 };

// make_router makes the network namespace that the pods of a user share.
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
		_exit(125); // it has told why
	snprintf(path, sizeof path, "/proc/%d/ns/net", maker);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	close(pair[0]);
	waitpid(maker, NULL, 0);
	return fd;
}

static int is_stop(int sig) { return sig == SIGTERM || sig == SIGINT || sig == SIGHUP; }

// attend waits for the end of a keeper, to which stops are passed on.
static int attend(struct podrun_birth *birth, pid_t keeper) {
	int sig, st;
	for (;;) {
		while (waitpid(keeper, &st, WNOHANG) == keeper)
			return st;
		if (sigwait(&birth->set, &sig) == 0 && is_stop(sig)) {
			birth->asked = 1; // until the next knows of it, should this one have no time
			kill(keeper, sig);
		}
	}
}

// rest waits before the next keeper begins, unless a stop is asked for.
static void rest(struct podrun_birth *birth, long long wait) {
	for (long long end = podrun_now() + wait; !birth->asked && (wait = end - podrun_now()) > 0;) {
		struct timespec t = {wait / 1000000000, wait % 1000000000};
		birth->asked = is_stop(sigtimedwait(&birth->set, NULL, &t));
	}
}

// delay is how long the next keeper has to wait after one has been killed.
static long long delay(long long born, unsigned *deaths) {
	if (podrun_now() - born > quick)
		*deaths = 0;
	if (++*deaths <= free_deaths)
		return 0;
	unsigned doublings = *deaths - free_deaths - 1;
	return doublings < 10 && first_delay << doublings < last_delay ? first_delay << doublings : last_delay;
}

// settle_down lets go of what the keeper has now, and of all that a guard needs not.
static void settle_down(struct podrun_birth *birth) {
	podrun_hold(birth->router, PODRUN_ROUTER_FD);
	podrun_hold(birth->served, PODRUN_SERVED_FD);
	birth->router = PODRUN_ROUTER_FD;
	birth->served = PODRUN_SERVED_FD;
	prctl(PR_SET_NAME, "podrun-guard", 0, 0, 0);
	podrun_report_to(2);
	for (int fd = PODRUN_REPORT_FD; fd < PODRUN_SERVED_FD; fd++)
		if (fd != PODRUN_ROUTER_FD)
			close(fd);
	podrun_close_from(PODRUN_SERVED_FD + 1);
	podrun_forget_program();
}

// bring_back prepares the birth of another keeper after one was killed, whose end was st.
static void bring_back(struct podrun_birth *birth, int st, long long wait) {
	dprintf(2, "podrun: the keeper was killed, with status %d, and its sandbox with it; another begins in %lld.%lld s\n", st,
		wait / 1000000000, wait / 100000000 % 10);
	rest(birth, wait);
	birth->again = 1;
	podrun_die_with(1);
	unsetenv("_PODRUN_ATTACH"); // descriptors of the first supervisor
	unsetenv("_PODRUN_PORTS");
	unsetenv("_PODRUN_RECORD");
	char *after = getenv("_PODRUN_AFTER"); // where Go looks, too: there is room for a word
	if (after && strlen(after) == strlen("sandbox"))
		strcpy(after, "sandbox");
	int nobody = open("/dev/null", O_WRONLY);
	if (nobody >= 0 && nobody != PODRUN_REPORT_FD) {
		dup2(nobody, PODRUN_REPORT_FD); // so that nothing else is there
		close(nobody);
	}
}

// bare returns whether nothing but the lock and the mark is in the working directory.
static int bare(void) {
	struct dirent *e;
	DIR *dir = opendir(".");
	int others = 0;
	while (dir && (e = readdir(dir)))
		others += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, "lock") && strcmp(e->d_name, "leaving");
	if (dir)
		closedir(dir);
	return dir && !others;
}

// finish_removal removes what is left of a pod that is marked as leaving. argv is that of a
// supervisor: program, stage, data root, runtime root, namespace, name. The lock's path is
// that of the runtime directory, wherever that is.
static void finish_removal(const struct podrun_birth *birth) {
	char **argv = birth->argv, dir[PATH_MAX], data[PATH_MAX];
	snprintf(data, sizeof data, "/proc/self/fd/%d", PODRUN_LOCK_FD);
	ssize_t n = readlink(data, dir, sizeof dir - 1);
	if (n < 0)
		return;
	dir[n] = 0;
	char *name = strrchr(dir, '/');
	if (!name || strcmp(name, "/lock")) // it is deleted
		return;
	*name = 0;
	if (chdir(dir) < 0 || access("leaving", F_OK) < 0)
		return;
	n = snprintf(data, sizeof data, "%s/pods/%s/%s", argv[2], argv[4], argv[5]);
	if (bare() && n < (ssize_t)sizeof data && access(data, F_OK) < 0 && errno == ENOENT) {
		unlink("leaving");
		unlink("lock");
		rmdir(dir);
		if ((name = strrchr(dir, '/')))
			*name = 0;
		rmdir(dir); // the namespace's directory, if this was its last pod
		return;
	}
	char stage[] = "_leave", *words[] = {argv[0], stage, argv[2], argv[3], argv[4], argv[5], NULL};
	if (chdir("/") < 0 || fcntl(PODRUN_LOCK_FD, F_SETFD, 0) < 0) // it holds the lock meanwhile
		return;
	podrun_forget_environment();
	sigprocmask(SIG_SETMASK, &birth->before, NULL);
	execv("/proc/self/exe", words);
	dprintf(2, "podrun: remove the pod: %s\n", strerror(errno));
}

void podrun_guard(char **argv, const char *hostname, int router, const char *apart) {
	pid_t guard = fork();
	if (guard < 0)
		podrun_die("fork the guard");
	if (guard > 0)
		_exit(0);

	struct podrun_birth birth = {.argv = argv, .hostname = hostname, .apart = *apart != 0, .ids = strcmp(apart, "1") ? apart : NULL};
	if ((birth.hostpid = getenv("_PODRUN_HOSTPID") != NULL))
		podrun_adopt_orphans();
	podrun_wait_signals(&birth.set, &birth.before);
	birth.router = podrun_out_of_the_way(router >= 0 ? router : make_router()); // of what a supervisor was given
	birth.served = podrun_out_of_the_way(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	for (unsigned deaths = 0;;) {
		long long born = podrun_now();
		eventfd_t served;
		int st = 0;
		pid_t keeper = syscall(SYS_clone, (birth.hostpid ? 0 : CLONE_NEWPID) | SIGCHLD, 0, 0, 0, 0);
		if (keeper == 0) {
			podrun_keeper(&birth);
			return;
		}
		if (keeper < 0 && !birth.again)
			podrun_die("make a PID namespace");
		if (keeper > 0) {
			settle_down(&birth);
			st = attend(&birth, keeper);
			if (birth.hostpid)
				podrun_end_descendants();
			int in_order = WIFEXITED(st) && (!birth.again || WEXITSTATUS(st) == 0 || WEXITSTATUS(st) == PODRUN_HOPELESS);
			if (in_order) {
				finish_removal(&birth);
				_exit(WEXITSTATUS(st));
			}
		}
		if (!birth.again && eventfd_read(PODRUN_SERVED_FD, &served) < 0)
			_exit(1); // whoever starts the pod has been told
		bring_back(&birth, st, delay(born, &deaths));
	}
}
