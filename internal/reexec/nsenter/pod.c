//go:build !podprogram

// The pod program runs what must be small or must not end with a supervisor: the monitor, the pod init with its probers, the
// pause process and the unit loop. It never starts Go. Its files use each other in this order: base.c and descendants.c,
// state.c, probe.c, init.c, start.c, monitor.c, first.c, and this one; pause.c and unitloop.c use base.c only.
#include "pod.h"

#include <string.h>

#include "base.h"

void podrun_pod_program(char **argv) {
	const char *what = podrun_env(PODRUN_ENV_ENTER);
	if (!strcmp(what, PODRUN_ENTER_FIRST))
		podrun_first();
	if (!strcmp(what, PODRUN_ENTER_POD))
		podrun_monitor(argv);
	if (!strcmp(what, PODRUN_ENTER_PAUSE))
		podrun_pause();
	if (!strcmp(what, PODRUN_ENTER_UNIT_LOOP))
		podrun_unit_loop(argv);
	podrun_die_text("podrun starts this program, nobody else");
}
