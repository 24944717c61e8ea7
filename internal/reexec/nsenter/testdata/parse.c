// Runs what the pod program parses: 'm' messages of a supervisor, one in each line; 'f' what the first process receives;
// 'u' the numbers for the unit loop; 'n' a message to it; 's' /proc/PID/stat.
#include "../base.c"
#include "../descendants.c"
#include "../first.c"
#include "../init.c"
#include "../probe.c"
#include "../state.c"
#include "../userns.c"
// Names that init.c has, too.
#define SIGNALS UNIT_SIGNALS
#define read_supervisor unit_read_supervisor
#include "../unitloop.c"

#include "../../../cparser/parser.h"

static void parse_messages(char *text) {
	supervisor = (typeof(supervisor)){.channel = -1};
	for (char *line; (line = strsep(&text, "\n"));) {
		char words[MAX_MESSAGE];
		snprintf(words, sizeof words, "%s", line);
		put(handle_state_message(words, -1) ? "state" : "");
		if (strcmp(words, MSG_SERVING)) // needs a monitor
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
	char *argv[MAX_FIRST_ARGS + 1], *at = text, *word;
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

static void parse(unsigned kind, char *text, size_t n) {
	struct podrun_stat st;
	switch (kind) {
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
