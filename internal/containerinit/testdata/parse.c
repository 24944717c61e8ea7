// parse runs what the init in C parses on the inputs that it reads: a kind, a length, and so many bytes. It answers with a
// length and strings, each with its NUL.
#include "../config.c"
#include "../json.c"
#include "../report.c"
#include "../user.c"

static char *answer;
static size_t answer_size;
static FILE *out;

static void put(const char *text) { fwrite(text, 1, strlen(text) + 1, out); }

static void put_number(unsigned long long n) {
	fprintf(out, "%llu", n);
	fputc(0, out);
}

static void put_list(char **list, size_t n) {
	put_number(n);
	for (size_t i = 0; i < n; i++)
		put(list[i]);
}

static void parse_config(char *text, size_t n) {
	struct config c = {0};
	struct config_progress progress = {0};
	struct json j = {.next = text, .end = text + n};
	const char *key, *wrong = config_complete(&progress, text, n) ? config_read(&c, &j, &key) : "it is not complete";
	put(wrong ? wrong : "");
	if (!wrong) {
		put(c.rootfs);
		put(c.cwd);
		put_list(c.args, c.arg_count);
		put_list(c.env, c.env_count);
		put_number(c.uid);
		put_number(c.capabilities[BOUNDING]);
		put_number(c.capabilities[AMBIENT]);
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

int main(void) {
	struct {
		unsigned kind, length;
	} head;
	while (fread(&head, sizeof head, 1, stdin)) {
		char *text = malloc(head.length + (head.kind == 'p')); // not one byte more, so that reading it is found
		if (head.length && !fread(text, head.length, 1, stdin))
			return 1;
		out = open_memstream(&answer, &answer_size);
		if (head.kind == 'c') {
			parse_config(text, head.length);
		} else if (head.kind == 's') {
			struct json j = {.next = text, .end = text + head.length};
			const char *type = config_sync(&j);
			put(type ? type : "");
		} else {
			text[head.length] = 0;
			const char *home = home_of(text, 1000);
			put(home ? home : "none");
		}
		fclose(out);
		unsigned length = answer_size;
		fwrite(&length, sizeof length, 1, stdout);
		fwrite(answer, 1, answer_size, stdout);
		fflush(stdout);
		free(answer);
		free(text);
	}
	return 0;
}
