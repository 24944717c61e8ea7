//go:build !podprogram

// The start of a sandbox's first processes: the pod init (init.c), PID 1 of a new PID namespace,
// the supervisor as its child, and the namespaces of the pod.
//
// The pod init stays in the host's network: its children, the supervisors, belong there and could
// not return. A short-lived child makes the pod's namespaces, and the pod init holds them as
// descriptors.
#define _GNU_SOURCE
#include "start.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init.h"

// place_namespace opens a namespace of a process at a fixed descriptor.
static void place_namespace(pid_t pid, const char *name, int where) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, name);
	podrun_place_fd(open(path, O_RDONLY | O_CLOEXEC), where);
}

// ns_child is a child that makes the pod's namespaces and lives until the pod init holds them.
struct ns_child {
	pid_t pid;
	int channel;
};

// await_child waits until the child has done its next step.
static void await_child(struct ns_child m) {
	char c;
	if (read(m.channel, &c, 1) != 1)
		_exit(125); // the child has reported the error
}

// make_namespaces runs in the child.
static void make_namespaces(const struct podrun_pod *pod, int channel) {
	char c;
	int also = pod->own_userns ? CLONE_NEWNS : 0;
	if (pod->own_userns && (unshare(CLONE_NEWUSER) < 0 || write(channel, "u", 1) != 1 || read(channel, &c, 1) != 1))
		podrun_die("make the pod's own user namespace");
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | also) < 0)
		podrun_die("make the pod's network, IPC and UTS namespaces");
	if (sethostname(pod->hostname, strlen(pod->hostname)) < 0)
		podrun_die("set the pod's hostname");
	_exit(write(channel, "x", 1) != 1 || read(channel, &c, 1) != 0);
}

// identity returns a map of every id of this user namespace to itself.
static const char *identity(const char *name) {
	static char text[4096];
	char path[64];
	unsigned first, outside, count;
	int n = 0;
	*text = 0;
	snprintf(path, sizeof path, "/proc/self/%s", name);
	FILE *own = fopen(path, "re");
	while (own && n < (int)sizeof text - 64 && fscanf(own, "%u %u %u", &first, &outside, &count) == 3)
		n += snprintf(text + n, sizeof text - n, "%u %u %u\n", first, first, count);
	if (own)
		fclose(own);
	return text;
}

// map_ids writes the maps of users and groups of a process's new user namespace. Without ids it gets the ids of this process.
static void map_ids(pid_t pid, const char *ids) {
	static const char *const names[] = {"uid_map", "gid_map"};
	char path[64];
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "/proc/%d/%s", pid, names[i]);
		podrun_write_file(path, ids ? ids : identity(names[i]), "map the ids of the pod's own user namespace");
	}
}

// start_ns_child starts the child that makes the namespaces. If the containers have a user
// namespace of their own, all namespaces exist when it returns. This process, and so the
// supervisors, then enters the mount namespace that belongs to that user namespace, but not the
// user namespace itself.
static struct ns_child start_ns_child(const struct podrun_pod *pod) {
	int pair[2], mounts;
	char path[64];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		podrun_die("make a socket");
	struct ns_child m = {fork(), pair[0]};
	if (m.pid < 0)
		podrun_die("fork");
	if (m.pid == 0) {
		close(pair[0]);
		make_namespaces(pod, pair[1]);
	}
	close(pair[1]);
	m.channel = podrun_move_fd_up(pair[0]);
	if (!pod->own_userns)
		return m;
	await_child(m);
	map_ids(m.pid, pod->ids);
	if (write(m.channel, "m", 1) != 1)
		podrun_die("make the pod's own user namespace");
	await_child(m);
	snprintf(path, sizeof path, "/proc/%d/ns/mnt", m.pid);
	if ((mounts = open(path, O_RDONLY | O_CLOEXEC)) < 0 || setns(mounts, CLONE_NEWNS) < 0)
		podrun_die("enter the pod's mount namespace");
	close(mounts);
	return m;
}

// place_namespaces opens the namespaces that the child has made.
static void place_namespaces(struct ns_child m, int own_userns) {
	place_namespace(m.pid, "net", PODRUN_FD_NET);
	place_namespace(m.pid, "ipc", PODRUN_FD_IPC);
	place_namespace(m.pid, "uts", PODRUN_FD_UTS);
	if (own_userns)
		place_namespace(m.pid, "user", PODRUN_FD_USER);
	else
		close(PODRUN_FD_USER);
	close(m.channel);
	waitpid(m.pid, NULL, 0);
}

// write_pidfile writes the identity of this process into the pod's lock: its pid and its start time
// as the /proc of the host shows them, which is still mounted, and the monitor's. If the disk has become
// read-only, the record of the pod init that was killed stays.
static void write_pidfile(const struct podrun_pod *pod) {
	struct podrun_stat st;
	char line[96];
	if (!podrun_read_stat("self", &st))
		podrun_die("read /proc/self/stat");
	int n = snprintf(line, sizeof line, "%d %llu %d %llu\n", st.pid, st.start, st.ppid, pod->monitor_start);
	if ((pwrite(PODRUN_FD_LOCK, line, n, 0) != n || ftruncate(PODRUN_FD_LOCK, n) < 0) && !pod->restarted)
		podrun_die("write the pod's lock");
}

void podrun_start_init(struct podrun_pod *pod) {
	write_pidfile(pod);
	if (unshare(CLONE_NEWNS) < 0)
		podrun_die("make a mount namespace");
	if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
		podrun_die("detach the mount namespace");
	if (pod->hostpid) { // /proc is the host's already
		podrun_become_subreaper();
		prctl(PR_SET_PDEATHSIG, SIGTERM); // should the monitor be killed, no other process would end the pod
	} else if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		podrun_die("mount /proc for the pod");
	struct ns_child maker = start_ns_child(pod);
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		podrun_die("make a socket");
	pid_t supervisor = fork();
	if (supervisor < 0)
		podrun_die("fork the supervisor");
	if (supervisor == 0) { // it stays in the host's network and forwards the pod's traffic
		if (pod->restarted)
			close(PODRUN_FD_REPORT); // the report has no reader
		podrun_execute_supervisor(pod, pair[1]);
		podrun_die("execute the supervisor program");
	}
	prctl(PR_SET_NAME, PODRUN_COMM_POD_INIT, 0, 0, 0);
	close(pair[1]);
	int channel = podrun_move_fd_up(pair[0]);
	if (!pod->own_userns) // the supervisor starts meanwhile
		await_child(maker);
	place_namespaces(maker, pod->own_userns);
	podrun_place_fd(pod->router, PODRUN_FD_ROUTER);
	podrun_place_fd(pod->served, PODRUN_FD_SERVED);
	podrun_place_fd(pod->program, PODRUN_FD_PROGRAM);
	pod->program = PODRUN_FD_PROGRAM;
	podrun_place_fd(signalfd(-1, &pod->set, SFD_CLOEXEC | SFD_NONBLOCK), PODRUN_FD_SIGNALS);
	podrun_place_fd(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), PODRUN_FD_ALARM);
	if (send(channel, PODRUN_MSG_READY, strlen(PODRUN_MSG_READY), MSG_NOSIGNAL) != strlen(PODRUN_MSG_READY))
		podrun_die("start the supervisor");
	podrun_place_fd(channel, PODRUN_FD_FREE);
	podrun_report_to(2); // the supervisor's log from now on
	podrun_close_from(PODRUN_FD_FREE + 1);
	podrun_drop_program_pages();
	podrun_init_loop(pod, supervisor, PODRUN_FD_FREE);
}
