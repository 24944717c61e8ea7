// A pod's first process that was started before its pod was known (prespawn). It has entered the
// user namespace, reports that, and waits for the rest in one message. The caller may end first or
// may find that there will be no pod: then this process ends, too, and leaves nothing.
//
// The rest (arguments, environment and descriptors) is the same that a first process receives when it is
// started for a known pod. This process then executes the program again.
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nsenter.h"

// place_fds moves the received descriptors, in this order, to standard error and the numbers after
// it. No move closes a descriptor that is still to be moved: 0 to 3 were open when they arrived, so each
// has a higher number than its place.
static void place_fds(const int *fds, size_t n) {
	for (size_t i = 0; i < n; i++) {
		int where = STDERR_FILENO + (int)i;
		if (fds[i] <= where || dup2(fds[i], where) < 0)
			_exit(125);
		close(fds[i]);
	}
}

// read_message receives the message and places its descriptors. It returns 0 if there is no
// message.
static ssize_t read_message(char *text) {
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(MAX_PRESPAWN_FILES * sizeof(int))];
	} control;
	struct iovec io = {text, MAX_PRESPAWN_TEXT};
	struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	ssize_t n;
	while ((n = recvmsg(FD_PRESPAWN, &msg, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (n <= 0)
		return 0;
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || text[n - 1] != 0 || !c || c->cmsg_type != SCM_RIGHTS)
		_exit(125);
	int fds[MAX_PRESPAWN_FILES];
	size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof *fds;
	memcpy(fds, CMSG_DATA(c), count * sizeof *fds);
	place_fds(fds, count);
	return n;
}

void podrun_prespawn(void) {
	static char text[MAX_PRESPAWN_TEXT];
	char *argv[MAX_PRESPAWN_ARGS + 1], *w = text, *end;
	int args = 0;
	podrun_clear_env();
	if (send(FD_PRESPAWN, "x", 1, MSG_NOSIGNAL) != 1)
		_exit(0);
	end = text + read_message(text);
	if (end == text)
		_exit(0);
	podrun_report_to(FD_REPORT);
	const char *program = w;
	for (w += strlen(w) + 1; w < end && *w && args < MAX_PRESPAWN_ARGS; w += strlen(w) + 1)
		argv[args++] = w;
	argv[args] = NULL;
	for (w++; w < end; w += strlen(w) + 1)
		putenv(w);
	execv(program, argv);
	podrun_die("execute the supervisor's program");
}
