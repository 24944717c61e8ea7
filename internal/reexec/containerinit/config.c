#include "config.h"

#include <stdlib.h>
#include <string.h>

bool podrun_config_complete(struct config_progress *s, const char *text, size_t n) {
	for (; s->read < n; s->read++) {
		char c = text[s->read];
		if (s->escaped)
			s->escaped = false;
		else if (s->in_string && c == '\\')
			s->escaped = true;
		else if (c == '"')
			s->in_string = !s->in_string;
		else if (!s->in_string && (c == '{' || c == '['))
			s->depth++;
		else if (!s->in_string && (c == '}' || c == ']') && --s->depth <= 0)
			return true;
	}
	return false;
}

// grown returns a list with room for one element more than it has, and a NULL after it.
static void *grown(struct json *j, void *list, size_t count, size_t size) {
	if (count & (count - 1))
		return list; // room is made at powers of two
	void *more = realloc(list, (count ? 2 * count : 1) * size + size);
	if (!more) {
		podrun_json_fail(j, "there is not enough memory");
		free(list);
	}
	return more;
}

static void read_strings(struct json *j, char ***list, size_t *count) {
	if (!podrun_json_null(j))
		for (podrun_json_open(j, '['); podrun_json_element(j);) {
			if (!(*list = grown(j, *list, *count, sizeof **list)))
				return;
			(*list)[(*count)++] = podrun_json_string(j);
		}
	if ((*list = *count ? *list : grown(j, *list, 0, sizeof **list)))
		(*list)[*count] = NULL;
}

static void read_groups(struct json *j, struct config *c) {
	if (podrun_json_null(j))
		return;
	for (podrun_json_open(j, '['); podrun_json_element(j);) {
		if (!(c->groups = grown(j, c->groups, c->group_count, sizeof *c->groups)))
			return;
		c->groups[c->group_count++] = podrun_json_number(j, UINT32_MAX - 1);
	}
}

static const char *const capability_names[] = {
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "LINUX_IMMUTABLE",
	"NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT",
	"SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE",
	"AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ",
	"PERFMON", "BPF", "CHECKPOINT_RESTORE",
};

static uint64_t read_capability_set(struct json *j) {
	uint64_t set = 0;
	if (podrun_json_null(j))
		return 0;
	for (podrun_json_open(j, '['); podrun_json_element(j);) {
		const char *name = podrun_json_string(j);
		size_t i = 0, n = sizeof capability_names / sizeof *capability_names;
		if (!name)
			return 0;
		while (i < n && (strncmp(name, "CAP_", 4) || strcmp(name + 4, capability_names[i])))
			i++;
		if (i == n)
			podrun_json_fail(j, "a capability is unknown");
		else
			set |= UINT64_C(1) << i;
	}
	return set;
}

static void read_capabilities(struct json *j, struct config *c) {
	static const char *const names[PODRUN_CAP_SETS] = {"Bounding", "Effective", "Permitted", "Inheritable", "Ambient"};
	char *name;
	for (podrun_json_open(j, '{'); (name = podrun_json_member(j));) {
		int i = 0;
		while (i < PODRUN_CAP_SETS && strcmp(name, names[i]))
			i++;
		if (i == PODRUN_CAP_SETS)
			podrun_json_fail(j, "a set of capabilities is unknown");
		else
			c->capabilities[i] = read_capability_set(j);
	}
}

// listed reports whether a name is in a list.
static bool listed(const char *const *list, const char *name) {
	while (*list && strcmp(*list, name))
		list++;
	return *list;
}

// places are the targets of mounts that this init makes. Others are made before, or by libcontainer's init.
static const char *const places[] = {"/proc", "/dev", "/dev/pts", "/sys", "/sys/fs/cgroup", NULL};

static unsigned long read_propagation(struct json *j) {
	unsigned long flags = 0;
	for (podrun_json_open(j, '['); podrun_json_element(j);) {
		if (flags)
			podrun_json_fail(j, "a mount has several kinds of propagation");
		flags = podrun_json_number(j, INT32_MAX);
	}
	return flags;
}

static void read_mount(struct json *j, struct mount *m) {
	char *name;
	for (podrun_json_open(j, '{'); (name = podrun_json_member(j));) {
		if (!strcmp(name, "source"))
			m->source = podrun_json_string(j);
		else if (!strcmp(name, "destination"))
			m->target = podrun_json_string(j);
		else if (!strcmp(name, "device"))
			m->type = podrun_json_string(j);
		else if (!strcmp(name, "data"))
			m->data = podrun_json_string(j);
		else if (!strcmp(name, "flags"))
			m->flags = podrun_json_number(j, INT32_MAX);
		else if (!strcmp(name, "propagation_flags"))
			m->propagation = read_propagation(j);
		else if (!strcmp(name, "cleared_flags"))
			podrun_json_skip(j); // the mounts of a plain container are podrun's own: nothing has to be cleared
		else if (!podrun_json_empty(j))
			podrun_json_fail(j, "a mount has something unknown");
	}
	if (!j->wrong && (!m->source || !m->type || !m->target || !listed(places, m->target)))
		podrun_json_fail(j, "a mount is none of podrun's");
}

static void read_mounts(struct json *j, struct config *c) {
	if (podrun_json_null(j))
		return;
	for (podrun_json_open(j, '['); podrun_json_element(j);) {
		if (!(c->mounts = grown(j, c->mounts, c->mount_count, sizeof *c->mounts)))
			return;
		struct mount *m = &c->mounts[c->mount_count++];
		memset(m, 0, sizeof *m);
		read_mount(j, m);
	}
}

// What is done by others: libcontainer's parent side, and nsexec before this. The process's capabilities count, not the
// container's.
static const char *const others_config[] = {
	"cgroups", "capabilities", "namespaces", "no_new_privileges", "oom_score_adj", "rlimits", "rootless_cgroups", "version", "labels",
	"devices", // of a /dev that libcontainer would make
	NULL,
};
static const char *const others_process[] = {"rlimits", "containerid", NULL};

static bool read_container(struct config *c, struct json *j, const char **key) {
	bool shares_keyring = false, has_dev = false;
	for (podrun_json_open(j, '{'); (*key = podrun_json_member(j));) {
		const char *k = *key;
		if (!strcmp(k, "rootfs"))
			c->rootfs = podrun_json_string(j);
		else if (!strcmp(k, "rootPropagation"))
			c->root_propagation = podrun_json_number(j, INT32_MAX);
		else if (!strcmp(k, "readonlyfs"))
			c->read_only = podrun_json_bool(j);
		else if (!strcmp(k, "mounts"))
			read_mounts(j, c);
		else if (!strcmp(k, "mask_paths"))
			read_strings(j, &c->masked_paths, &c->masked_path_count);
		else if (!strcmp(k, "readonly_paths"))
			read_strings(j, &c->read_only_paths, &c->read_only_path_count);
		else if (!strcmp(k, "no_new_keyring"))
			shares_keyring = podrun_json_bool(j);
		else if (listed(others_config, k))
			podrun_json_skip(j);
		else if (!podrun_json_empty(j))
			podrun_json_fail(j, "it is for libcontainer's init");
		if (j->wrong)
			return false;
	}
	for (size_t i = 0; i < c->mount_count && !j->wrong; i++)
		has_dev |= !strcmp(c->mounts[i].target, "/dev") && !strcmp(c->mounts[i].type, "bind");
	return shares_keyring && has_dev;
}

static void read_process(struct config *c, struct json *j, const char *k) {
	if (!strcmp(k, "args"))
		read_strings(j, &c->args, &c->arg_count);
	else if (!strcmp(k, "env"))
		read_strings(j, &c->env, &c->env_count);
	else if (!strcmp(k, "uid"))
		c->uid = podrun_json_number(j, UINT32_MAX - 1);
	else if (!strcmp(k, "gid"))
		c->gid = podrun_json_number(j, UINT32_MAX - 1);
	else if (!strcmp(k, "additional_groups"))
		read_groups(j, c);
	else if (!strcmp(k, "cwd"))
		c->cwd = podrun_json_string(j);
	else if (!strcmp(k, "passed_files_count"))
		c->passed_files = podrun_json_number(j, 1024);
	else if (!strcmp(k, "capabilities"))
		read_capabilities(j, c);
	else if (!strcmp(k, "no_new_privileges"))
		c->no_new_privileges = podrun_json_bool(j);
	else if (!strcmp(k, "cgroup2_path"))
		c->cgroup = podrun_json_string(j);
	else if (listed(others_process, k))
		podrun_json_skip(j);
	else if (!podrun_json_empty(j))
		podrun_json_fail(j, "it is for libcontainer's init");
}

const char *podrun_config_read(struct config *c, struct json *j, const char **key) {
	bool complete = false;
	const char *k;
	*key = NULL;
	for (podrun_json_open(j, '{'); !j->wrong && (k = podrun_json_member(j));) {
		if (!strcmp(k, "config")) {
			complete = read_container(c, j, key);
		} else {
			*key = k;
			read_process(c, j, k);
		}
	}
	if (!j->wrong && (!complete || !c->rootfs || c->rootfs[0] != '/' || !c->arg_count || !c->cwd || !c->env))
		podrun_json_fail(j, "a part of the configuration is missing");
	return j->wrong;
}

const char *podrun_config_sync(struct json *j) {
	const char *type = NULL, *k;
	for (podrun_json_open(j, '{'); (k = podrun_json_member(j));) {
		if (!strcmp(k, "type"))
			type = podrun_json_string(j);
		else if (!podrun_json_empty(j))
			podrun_json_fail(j, "an answer has an argument");
	}
	return j->wrong ? NULL : type;
}
