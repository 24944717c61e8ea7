// Code generated from internal/protocol/protocol.go by go generate. DO NOT EDIT.
#pragma once

// Environment variables. Environ of internal/reexec removes all of them from what a child inherits.
#define PODRUN_ENV_ENTER "_PODRUN_ENTER" // Go → C constructor, pod program: what the process enters before Go starts, or the part of the pod program
#define PODRUN_ENV_CLI "_PODRUN_CLI" // CLI → fast path: descriptor of the CLI's program (O_PATH); where it is set the fast path does not run again
