//go:build !podprogram

// The first process of a pod. It may start before its pod is known: it enters the user namespace, reports that, and
// waits for the pod, that is, for arguments, environment and descriptors. Meanwhile the caller may move it to
// the pod's cgroup, which every process of the pod inherits. The caller may end first, or may find that there will be
// no pod: then this process ends, too, and leaves nothing.
//
// The socket is a stream. This process writes "x" when it is ready, or an error. The caller writes one byte with each group
// of descriptors, then the length of a text as 32 bits, and the text: strings, each with its NUL, first the arguments, then
// an empty one, then variables.
#define _GNU_SOURCE
#include "pod.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "userns.h"

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

// place_fds moves the received descriptors, in this order, to standard error and the numbers after
// it. No move closes a descriptor that is still to be moved: 0 to 3 were open when they arrived, so each
// has a higher number than its place.
static void place_fds(const int *fds, size_t n) {
	for (size_t i = 0; i < n; i++) {
		int where = STDERR_FILENO + (int)i;
		if (fds[i] <= where || dup2(fds[i], where) < 0)
			podrun_die("place the pod's descriptors");
		close(fds[i]);
	}
}

// receive reads one byte and the descriptors that come with it, and returns how many. The caller that has gone ends this
// process.
static size_t receive(char *byte, int fds[static PODRUN_MAX_FIRST_FILES]) {
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(PODRUN_MAX_FIRST_FILES * sizeof(int))];
	} control;
	struct iovec io = {byte, 1};
	struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	ssize_t n;
	while ((n = recvmsg(PODRUN_FD_FIRST, &msg, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (n != 1)
		_exit(0);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	if (msg.msg_flags & MSG_CTRUNC)
		podrun_die_text("this process may not have as many descriptors as the pod needs");
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof *fds;
	memcpy(fds, CMSG_DATA(c), count * sizeof *fds);
	return count;
}

// read_all reads exactly size bytes.
static void read_all(void *to, size_t size) {
	for (size_t have = 0; have < size;) {
		ssize_t n = read(PODRUN_FD_FIRST, (char *)to + have, size - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);
		have += n;
	}
}

// read_pod receives the pod's descriptors and text. It returns the text, with its size.
static char *read_pod(size_t *size, int **fds, size_t *count) {
	char byte;
	for (*fds = NULL, *count = 0;;) {
		int more[PODRUN_MAX_FIRST_FILES];
		size_t n = receive(&byte, more);
		if (n == 0)
			break;
		if (!(*fds = realloc(*fds, (*count + n) * sizeof **fds)))
			podrun_die("receive the pod's descriptors");
		memcpy(*fds + *count, more, n * sizeof *more);
		*count += n;
	}
	uint32_t length;
	read_all(&length, sizeof length);
	char *text = length <= PODRUN_MAX_FIRST_TEXT ? malloc(length + 1UL) : NULL;
	if (!text)
		podrun_die("receive the pod's description");
	read_all(text, length);
	text[length] = 0;
	*size = length;
	return text;
}

// next_word returns the string at *at and moves *at after it, or returns "" at the end.
static char *next_word(char **at, const char *end) {
	char *word = *at;
	if (word >= end)
		return "";
	*at += strlen(word) + 1;
	return word;
}

// read_args stores the arguments, which an empty string ends.
static void read_args(char *argv[static PODRUN_MAX_FIRST_ARGS + 1], char **at, const char *end) {
	size_t args = 0;
	for (char *word; args < PODRUN_MAX_FIRST_ARGS && *(word = next_word(at, end));)
		argv[args++] = word;
	argv[args] = NULL;
}

void podrun_first(void) {
	int *fds;
	char *argv[PODRUN_MAX_FIRST_ARGS + 1], *word;
	size_t size, count;
	podrun_report_to(PODRUN_FD_FIRST);
	if (podrun_become_root(0))
		limit_inotify();
	podrun_clear_env();
	if (send(PODRUN_FD_FIRST, "x", 1, MSG_NOSIGNAL) != 1)
		_exit(0);
	char *text = read_pod(&size, &fds, &count), *at = text, *end = text + size;
	podrun_report_to(STDERR_FILENO); // the socket's number gets another descriptor
	place_fds(fds, count);
	podrun_report_to(PODRUN_FD_REPORT);
	read_args(argv, &at, end);
	while (*(word = next_word(&at, end)))
		putenv(word);
	execv("/proc/self/exe", argv);
	podrun_die("execute the pod program");
}
