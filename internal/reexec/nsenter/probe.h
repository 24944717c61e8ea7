// Probers, each of which runs one probe of the table PODRUN_KEPT_PROBES, and exits when that does not succeed.
#pragma once

#include <sys/types.h>

// podrun_start_probers starts probers. It returns -1 if it cannot. podrun_stop_probers ends them
// together with what they run, podrun_forget_prober reports whether a process that was reaped is one
// of them, and podrun_count_probers returns how many run.
int podrun_start_probers(int count);
void podrun_stop_probers(void);
int podrun_forget_prober(pid_t pid);
int podrun_count_probers(void);
