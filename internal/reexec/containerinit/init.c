// A container's init in C. libcontainer's parent side starts the supervisor program as the init, and runc's nsexec makes
// its namespaces, in a constructor. If the supervisor has asked for it (PODRUN_PLAIN_LOG_LEVEL), the process does not go on to
// the Go runtime and libcontainer's init, but does here what that init does for a plain container (standard_init_linux.go),
// in the same order where the order matters, and says the same to the parent side (sync.go).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config.h"
#include "mount.h"
#include "protocol.h"
#include "report.h"
#include "user.h"

enum { max_config = 16 << 20 };

extern void nsexec(void) __attribute__((weak)); // libcontainer/nsenter

// descriptor returns the number of a descriptor that libcontainer passes.
static int descriptor(const char *name) {
	const char *text = getenv(name);
	char *end;
	long n = text && *text ? strtol(text, &end, 10) : -1;
	if (n < 3 || n > 1 << 20 || *end)
		podrun_refuse("libcontainer passes no descriptor", name);
	return n;
}

// read_text reads the configuration, whose end is its last bracket: the parent side keeps its end open.
static struct json read_text(int fd) {
	struct config_progress progress = {0};
	size_t have = 0, room = 64 << 10;
	char *text = malloc(room);
	while (text && !podrun_config_complete(&progress, text, have)) {
		if (have == room)
			text = room < max_config ? realloc(text, room *= 2) : NULL;
		ssize_t n = text ? read(fd, text + have, room - have) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		podrun_must(n, "read", "the configuration");
		if (n == 0)
			break;
		have += n;
	}
	if (!text)
		podrun_refuse("the configuration is too large", "");
	return (struct json){.next = text, .end = text + have};
}

// ask sends a message and waits for the answer.
static void ask(int socket, const char *type, const char *want) {
	char text[256];
	int n = snprintf(text, sizeof text, "{\"type\":\"%s\",\"flags\":0}", type);
	podrun_must(send(socket, text, n, MSG_NOSIGNAL), "tell libcontainer", type);
	do
		n = recv(socket, text, sizeof text, MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	podrun_must(n, "wait for libcontainer's", want);
	if (n == 0)
		_exit(255); // it has gone
	struct json j = {.next = text, .end = text + (n < (int)sizeof text ? n : 0)};
	const char *got = podrun_config_sync(&j);
	if (!got || strcmp(got, want))
		podrun_refuse("libcontainer does not answer", want);
}

// await_start waits until the parent side opens the other end of its FIFO.
static void await_start(int descriptors, int fifo) {
	char name[16];
	snprintf(name, sizeof name, "%d", fifo);
	int fd;
	do
		fd = openat(descriptors, name, O_WRONLY | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	if (fd < 0 || write(fd, "0", 1) != 1)
		_exit(255);
}

static __attribute__((noreturn)) void container_init(void) {
	struct config c = {0};
	const char *key;
	int parent = getppid(), sync = descriptor("_LIBCONTAINER_SYNCPIPE");
	podrun_report_steps_to(sync);
	int pipe = descriptor("_LIBCONTAINER_INITPIPE"), log = descriptor("_LIBCONTAINER_LOGPIPE"), fifo = descriptor("_LIBCONTAINER_FIFOFD");
	struct json text = read_text(pipe);
	close(pipe);
	const char *wrong = podrun_config_read(&c, &text, &key);
	if (wrong)
		podrun_refuse(wrong, key ? key : "");

	int descriptors = podrun_open_proc("/proc/self/fd", O_PATH | O_DIRECTORY), root = podrun_mount_root(&c);
	bool set_groups = podrun_groups_allowed();
	podrun_mount_all(root, &c);
	ask(sync, "procHooks", "procHooksDone"); // the container's cgroup gets its limits
	podrun_protect_paths(root, &c);
	podrun_enter_root(root);
	podrun_make_directory(root, c.cwd);
	if (c.read_only)
		podrun_make_read_only(root);
	close(root);
	umask(022);
	if (c.no_new_privileges)
		podrun_must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set", "no_new_privs");
	ask(sync, "procReady", "procRun"); // the process gets its limits

	podrun_complete_environment(&c);
	podrun_become(&c, set_groups);
	if (getppid() != parent)
		_exit(255); // the supervisor has gone
	close(sync);
	close(log);
	await_start(descriptors, fifo);
	podrun_must(syscall(SYS_close_range, c.passed_files + 3, ~0U, 0), "close", "descriptors"); // CVE-2024-21626
	execve(c.args[0], c.args, c.env);
	_exit(errno == ENOENT ? 127 : 126); // the exec shim's descriptor: it reports its own failures
}

// nsexec is also called by a constructor of libcontainer/nsenter. The linker decides which of the two comes first. A priority
// would be wrong: nsexec ends processes with exit, which requires that the compiler's own constructors have run.
__attribute__((constructor)) static void podrun_container_init(void) {
	const char *level = getenv("_LIBCONTAINER_LOGLEVEL"), *type = getenv("_LIBCONTAINER_INITTYPE");
	char name[16];
	if (!level || strcmp(level, PODRUN_PLAIN_LOG_LEVEL) || !type || strcmp(type, "standard") || !getenv("_LIBCONTAINER_INITPIPE"))
		return;
	if (prctl(PR_GET_NAME, name) == 0 && strcmp(name, "runc:[2:INIT]"))
		nsexec(); // returns in the container's process only
	container_init();
}
