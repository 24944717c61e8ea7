// The configuration of a container, which libcontainer sends to its init as JSON (initConfig in its init_linux.go).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "json.h"

struct mount {
	char *source, *target, *type, *data;
	unsigned long flags, propagation; // MS_…
};

enum { PODRUN_BOUNDING, PODRUN_EFFECTIVE, PODRUN_PERMITTED, PODRUN_INHERITABLE, PODRUN_AMBIENT, PODRUN_CAP_SETS };

struct config {
	char *rootfs, *cwd, *cgroup; // cgroup: where the container's cgroup is mounted, or NULL
	unsigned long root_propagation; // MS_…, or 0
	bool read_only, no_new_privileges;
	struct mount *mounts;
	char **read_only_paths, **masked_paths, **args, **env; // lists end with NULL
	gid_t *groups;
	size_t mount_count, read_only_path_count, masked_path_count, arg_count, env_count, group_count;
	uid_t uid;
	gid_t gid;
	unsigned passed_files; // descriptors from 3 on that the program keeps
	uint64_t capabilities[PODRUN_CAP_SETS];
};

// podrun_config_complete returns whether n bytes have all of a configuration. state, zero at first, remembers what was read.
struct config_progress {
	size_t read;
	int depth;
	bool in_string, escaped;
};
bool podrun_config_complete(struct config_progress *state, const char *text, size_t n);

// podrun_config_read reads the configuration and keeps pointers into its text. It refuses everything that it does not
// know or that this init does not do, and returns what is wrong, in words, with the name in key; NULL if nothing is.
const char *podrun_config_read(struct config *c, struct json *j, const char **key);

// podrun_config_sync returns the type of a message of libcontainer's, or NULL if it is none or has an argument.
const char *podrun_config_sync(struct json *j);
