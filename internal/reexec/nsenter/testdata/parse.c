// Runs what the pod program parses: 'm' messages of a supervisor, one in each line; 'f' what the first process receives;
// 'u' the numbers for the unit loop; 'n' a message to it; 's' /proc/PID/stat; 't' a table of probes; 'a' an answer of a
// server, as it grows by one byte each time.
#include "../base.c"
#include "../descendants.c"
#include "../first.c"
#include "../init.c"
#include "../probe.c"
#include "../state.c"
#include "../userns.c"
#include "../unitloop.c"

#include "../../cparser/parser.h"

static void parse_messages(char *text) {
	supervisor = (typeof(supervisor)){.channel = -1};
	for (char *line; (line = strsep(&text, "\n"));) {
		char words[PODRUN_MAX_MESSAGE];
		snprintf(words, sizeof words, "%s", line);
		put(handle_state_message(words, -1) ? "state" : "");
		if (strcmp(words, PODRUN_MSG_SERVING)) // needs a monitor
			handle_message(words);
	}
	put_number(supervisor.over);
	put_number(supervisor.code);
	put_number(supervisor.hibernates);
	put_number(supervisor.resume_at);
	put_number(supervisor.ping);
	put_number(supervisor.probes);
}

static void parse_first(char *text, size_t n) {
	char *argv[PODRUN_MAX_FIRST_ARGS + 1], *at = text, *word;
	read_args(argv, &at, text + n);
	for (char **a = argv; *a; a++)
		put(*a);
	put("");
	while (*(word = next_word(&at, text + n)))
		put(word);
}

static void parse_spec(const char *text) {
	static struct pollfd fds[FIRST_POD + MAX_PODS];
	int n, wakers, cli = read_spec(text, fds, &n, &wakers);
	put_number(cli);
	put_number(output.from);
	put_number(n);
	put_number(wakers);
	for (int i = 0; i < n + wakers; i++)
		put_number(fds[FIRST_POD + i].fd);
}

static void parse_notify(const char *text, size_t n) {
	static struct pod from;
	int pair[2], changed = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 || send(pair[0], text, n, 0) != (ssize_t)n)
		exit(1);
	put_number(read_message(pair[1], &from, &changed));
	put_number(changed);
	put(from.status);
	close(pair[0]);
	close(pair[1]);
}

static void parse_answer(const char *input, size_t size) {
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

static void parse_table(char *table, size_t size) {
	struct probe *p;
	for (int i = 0; (p = find_probe(table, size, i)); i++) {
		fprintf(out, "%lld %lld %lld %u %u %u %u text %.*s", p->next, p->period, p->timeout, p->family, p->netns, p->port, p->counter,
			(int)p->text_size, (char *)(p + 1));
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
	struct podrun_stat st;
	char *table;
	switch (kind) {
	case 'a':
		parse_answer(text, n);
		break;
	case 't':
		parse_table(table = without_end(text, n), n);
		free(table);
		break;
	case 'm':
		parse_messages(text);
		break;
	case 'f':
		parse_first(text, n);
		break;
	case 'u':
		parse_spec(text);
		break;
	case 'n':
		parse_notify(text, n);
		break;
	case 's':
		put_number(parse_stat(text, &st));
		put_number(st.pid);
		put_number(st.ppid);
		put_number(st.start);
		put(st.comm);
	}
}
