// Messages between the supervisor and the trampoline. order.go and reply.go have the same
// definitions.
#pragma once

#include <linux/types.h>

#define CHANNEL 4 // a stream socket: the configuration comes in, replies go out
#define NAME "podrun-start" // name of the process until it executes its program
#define TARGET 3  // with EXEC: a pidfd of the container's first process; else the trampoline's own program

enum {
	EXEC = 1,       // enter the container by the pidfd; else libcontainer has done all but the last steps
	NO_NEW_PRIVS = 2,
	FILTER_EARLY = 4,      // with EXEC: load the filter before the process is in the container
	SET_GROUPS = 8, // the user namespace permits it
	LABEL = 16,     // the profile is an SELinux label
};

// Maxima of the variable parts of a configuration.
#define MAX_GROUPS 4096
#define MAX_FILTER 4096 // BPF_MAXINSNS
#define MAX_LIMITS 16
#define MAX_PATH 4096

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
	__u64 bounding, permitted; // effective is as permitted; nothing is inheritable or ambient
};

#define MAGIC 0x70727431

// A reply is an event and a number: the pid of the process, or an errno.
struct reply {
	__u32 what;
	__s32 number;
};

enum {
	STARTED = 1, // the process that will be the program
	BAD_CONFIG,
	OOM,
	LIMITS,
	ENTER,
	PRIVILEGES,
	DIRECTORY,
	OUTSIDE, // the working directory is not in the container
	BOUNDING,
	STDIO,
	GROUPS,
	GROUP,
	USER,
	CAPABILITIES,
	FILTER,
	PROFILE,
	FORK,
	SESSION,
	EXECUTE,
	INTERPRETER, // the program exists, its interpreter does not
};
