//go:build none

// scripts/podprogram compiles this file and the others but nsenter.c; Go does not.
#include "pod.h"

int main(int argc, char **argv) {
	(void)argc;
	podrun_pod_program(argv);
}
