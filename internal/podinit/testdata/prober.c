// Runs the parsers of a prober on standard input: with "answer" on an answer of a server, as it grows by one
// byte each time, with "table" on a table of probes.
#include "../../reexec/nsenter/probe.c"

long long podrun_now(void) { return 0; }
int podrun_find_kept(const char *name) { return name ? -1 : 0; }
void podrun_close_from(unsigned first) { (void)first; }
void podrun_drop_program_pages(void) {}
void podrun_drop_privileges(void) {}

static int read_answer(const char *input, size_t size) {
	int verdict = 0;
	for (size_t n = 1; n <= size && verdict == 0; n++) {
		char *text = malloc(n + 1); // of exactly this size: one byte after it is an error
		memcpy(text, input, n);
		text[n] = 0;
		verdict = judge_answer(text, n, 0);
		if (verdict == 0 && n == size)
			verdict = judge_answer(text, n, 1);
		free(text);
	}
	return printf("%d\n", verdict);
}

static int read_table(char *table, size_t size) {
	struct probe *p;
	for (int i = 0; (p = find_probe(table, size, i)); i++) {
		printf("%lld %lld %lld %u %u %u %u text %.*s", p->next, p->period, p->timeout, p->family, p->netns, p->port, p->counter, (int)p->text_size, (char *)(p + 1));
		if (!p->family) {
			struct strings s;
			printf(" strings %d", read_strings(p, &s));
			for (char **a = s.argv; a && *a; a++)
				printf(" %s", *a);
			for (char **e = s.env; e && *e; e++)
				printf(" %s", *e);
			free(s.argv);
			free(s.env);
		}
		printf("\n");
	}
	return 0;
}

int main(int argc, char **argv) {
	static char input[1 << 16] __attribute__((aligned(8)));
	size_t size = fread(input, 1, sizeof input, stdin);
	char *exact = malloc(size ? size : 1); // one byte after it is an error
	memcpy(exact, input, size);
	int failed = argc > 1 && !strcmp(argv[1], "answer") ? read_answer(exact, size) < 0 : read_table(exact, size);
	free(exact);
	return failed;
}
