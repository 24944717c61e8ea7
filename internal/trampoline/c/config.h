// What the supervisor says to the trampoline and hears from it. config.go has the same.
#pragma once

#include <linux/types.h>

#define CHANNEL 4 // a stream socket: an order comes, words go
#define NAME "podrun-start" // of the process until it executes its program
#define TARGET 3  // to join: a pidfd of the container's first process; else the trampoline's own program

enum {
	EXEC = 1,       // enter the container by the pidfd; else libcontainer has done all but the last steps
	NO_NEW_PRIVS = 2,
	FILTER_EARLY = 4,      // to join: load the filter before the process is in the container
	SET_GROUPS = 8, // the user namespace lets us
	LABEL = 16,     // the profile is SELinux's label
};

// Most of what follows an order.
#define MAX_GROUPS 4096
#define MAX_FILTER 4096 // BPF_MAXINSNS
#define MAX_LIMITS 16
#define MAX_PATH 4096

struct limit {
	__u64 type, soft, hard;
};

// An order is followed by limits, groups, the filter's instructions, the working directory
// with its NUL, and what is written to /proc/self/attr/exec.
struct config {
	__u32 magic, flags;
	__u32 uid, gid;
	__u32 namespaces; // CLONE_NEW…
	__u32 filter_flags, limits, groups, filter, cwd; // how many; of cwd the bytes
	__u32 oom_length;
	char oom_score[8]; // as it is written to /proc/self/oom_score_adj
	__u32 profile; // bytes of what AppArmor or SELinux is told, or 0
	__u64 bounding, permitted; // effective is as permitted; nothing is inheritable or ambient
};

#define MAGIC 0x70727431

// A word is what has happened and a number: the pid of the process, or an errno.
struct reply {
	__u32 what;
	__s32 number;
};

enum {
	STARTED = 1, // the process that is to be the program
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
	INTERPRETER, // the program is there, what is to interpret it is not
};
