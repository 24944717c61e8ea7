// Runs the parsers of a prober: 'a' on an answer of a server, as it grows by one byte each time, 't' on a table of probes.
#include "../../reexec/nsenter/probe.c"

#include "../../cparser/parser.h"

long long podrun_now(void) { return 0; }
int podrun_find_kept(const char *name) { return name ? -1 : 0; }
void podrun_close_from(unsigned first) { (void)first; }
void podrun_drop_program_pages(void) {}
void podrun_drop_privileges(void) {}

static void read_answer(const char *input, size_t size) {
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
	put_number(verdict);
}

static void read_table(char *table, size_t size) {
	struct probe *p;
	for (int i = 0; (p = find_probe(table, size, i)); i++) {
		fprintf(out, "%lld %lld %lld %u %u %u %u text %.*s", p->next, p->period, p->timeout, p->family, p->netns, p->port, p->counter, (int)p->text_size, (char *)(p + 1));
		if (!p->family) {
			struct strings s;
			fprintf(out, " strings %d", read_strings(p, &s));
			for (char **a = s.argv; a && *a; a++)
				fprintf(out, " %s", *a);
			for (char **e = s.env; e && *e; e++)
				fprintf(out, " %s", *e);
			free(s.argv);
			free(s.env);
		}
		fputc(0, out);
	}
}

static void parse(unsigned kind, char *text, size_t n) {
	if (kind == 'a') {
		read_answer(text, n);
		return;
	}
	char *exact = malloc(n ? n : 1); // one byte after it is an error
	memcpy(exact, text, n);
	read_table(exact, n);
	free(exact);
}
