// The start of a sandbox's first processes.
#pragma once

#include "init.h"

// podrun_start_init makes this process a pod init, which starts its first supervisor. The process is PID 1 of a new PID
// namespace, except with hostpid.
void podrun_start_init(struct podrun_pod *pod) __attribute__((noreturn));
