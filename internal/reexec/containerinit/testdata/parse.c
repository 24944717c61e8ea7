// Runs what the init in C parses.
#define _GNU_SOURCE
#include "../config.c"
#include "../json.c"
#include "../mount.c"
#include "../report.c"
#include "../user.c"

#include "../../cparser/parser.h"

static void put_list(char **list, size_t n) {
	put_number(n);
	for (size_t i = 0; i < n; i++)
		put(list[i]);
}

static void parse_config(char *text, size_t n) {
	struct config c = {0};
	struct config_progress progress = {0};
	struct json j = {.next = text, .end = text + n};
	const char *key, *wrong = podrun_config_complete(&progress, text, n) ? podrun_config_read(&c, &j, &key) : "it is not complete";
	put(wrong ? wrong : "");
	if (!wrong) {
		put(c.rootfs);
		put(c.cwd);
		put_list(c.args, c.arg_count);
		put_list(c.env, c.env_count);
		put_number(c.uid);
		put_number(c.capabilities[PODRUN_BOUNDING]);
		put_number(c.capabilities[PODRUN_AMBIENT]);
		put_number(c.group_count);
		put_number(c.mount_count);
		for (size_t i = 0; i < c.mount_count; i++) {
			put(c.mounts[i].target);
			put_number(c.mounts[i].flags);
		}
		put_list(c.masked_paths, c.masked_path_count);
	}
	free(c.args);
	free(c.env);
	free(c.mounts);
	free(c.groups);
	free(c.masked_paths);
	free(c.read_only_paths);
}

static void parse(unsigned kind, char *text, size_t n) {
	if (kind == 'c') {
		char *config = without_end(text, n);
		parse_config(config, n);
		free(config);
	} else if (kind == 's') {
		struct json j = {.next = text, .end = text + n};
		const char *type = podrun_config_sync(&j);
		put(type ? type : "");
	} else {
		const char *home = podrun_home_of(text, 1000);
		put(home ? home : "none");
	}
}
