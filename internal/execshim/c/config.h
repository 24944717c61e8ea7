// Messages between the supervisor and the exec shim. config.go has the same structs; protocol.h has
// the numbers.
#pragma once

#include <linux/types.h>

#include "protocol.h"

struct limit {
	__u64 type, soft, hard;
};

// A config is followed by the limits, the groups, the filter's instructions, the working directory
// with its NUL, and the text for /proc/self/attr/exec.
struct config {
	__u32 magic, flags;
	__u32 uid, gid;
	__u32 namespaces; // CLONE_NEW…
	__u32 filter_flags, limits, groups, filter, cwd; // counts; of cwd the bytes
	__u32 oom_length;
	char oom_score[8]; // the text for /proc/self/oom_score_adj
	__u32 profile; // bytes of the AppArmor profile or the SELinux label, or 0
	__u64 timer_slack; // nanoseconds; 0: the caller's
	__u64 bounding, permitted; // effective is as permitted; nothing is inheritable or ambient
};

// A reply is PODRUN_SHIM_STARTED with the pid of the process, or a failed step, PODRUN_STEP_…, with an
// errno.
struct reply {
	__u32 what;
	__s32 number;
};
