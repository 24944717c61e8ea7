// The exec shim's replies to the supervisor, and its exits.
#pragma once

#include "syscall.h"
#include "config.h"

static void send_reply(__u32 what, long number) {
	struct reply w = {what, number};
	syscall5(__NR_sendto, PODRUN_FD_SHIM_CHANNEL, (long)&w, sizeof w, MSG_NOSIGNAL, 0);
}

static __attribute__((noreturn)) void exit_with(int code) {
	for (;;)
		sys(__NR_exit_group, code);
}

static __attribute__((noreturn)) void fail(__u32 what, long err) {
	send_reply(what, -err);
	exit_with(what >= PODRUN_STEP_EXECUTE && -err == ENOENT ? 127 : 126);
}

static void must(__u32 what, long result) {
	if (result < 0)
		fail(what, result);
}
