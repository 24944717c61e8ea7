// What the trampoline says to the supervisor, and how it ends.
#pragma once

#include "kernel.h"
#include "order.h"

static void say(__u32 what, long number) {
	struct word w = {what, number};
	ask(__NR_sendto, CHANNEL, (long)&w, sizeof w, MSG_NOSIGNAL, 0);
}

static __attribute__((noreturn)) void end(int code) {
	for (;;)
		kernel(__NR_exit_group, code);
}

static __attribute__((noreturn)) void fail(__u32 what, long err) {
	say(what, -err);
	end(what >= EXECUTE && -err == ENOENT ? 127 : 126);
}

static void must(__u32 what, long result) {
	if (result < 0)
		fail(what, result);
}
