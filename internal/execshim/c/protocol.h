// Code generated from internal/protocol/protocol.go by go generate. DO NOT EDIT.
#pragma once

// Inherited descriptors, and descriptors of the pod init that others open below /proc/PID/fd.
#define PODRUN_FD_SHIM_TARGET 3 // supervisor → exec shim: a pidfd of the container's first process; if it is that process itself, the shim's own program
#define PODRUN_FD_SHIM_CHANNEL 4 // supervisor → exec shim: the stream socket for the configuration and the replies

// Names of processes (/proc/PID/comm).
#define PODRUN_COMM_SHIM "podrun-execshim" // exec shim → supervisor: the exec shim, until it executes its program

// The configuration for the exec shim: a fixed head (struct config), then what it counts.
#define PODRUN_SHIM_MAGIC 0x70727431 // supervisor → exec shim: the first number of the configuration
#define PODRUN_SHIM_EXEC 1 // supervisor → exec shim: flag: enter the container by the pidfd; else libcontainer has done all but the last steps
#define PODRUN_SHIM_NO_NEW_PRIVS 2 // supervisor → exec shim: flag: set no_new_privs
#define PODRUN_SHIM_FILTER_EARLY 4 // supervisor → exec shim: flag: load the filter before the process is in the container
#define PODRUN_SHIM_SET_GROUPS 8 // supervisor → exec shim: flag: the user namespace permits to set groups
#define PODRUN_SHIM_LABEL 16 // supervisor → exec shim: flag: the profile is an SELinux label
#define PODRUN_MAX_SHIM_GROUPS 4096 // supervisor → exec shim: groups of a configuration
#define PODRUN_MAX_SHIM_FILTER 4096 // supervisor → exec shim: instructions of a filter (BPF_MAXINSNS)
#define PODRUN_MAX_SHIM_LIMITS 16 // supervisor → exec shim: limits of a configuration
#define PODRUN_MAX_SHIM_PATH 4096 // supervisor → exec shim: bytes of a path

// Replies of the exec shim: the first comes with a pid, the others, failed steps, with an errno.
#define PODRUN_SHIM_STARTED 1 // exec shim → supervisor: the process that will be the program is made
#define PODRUN_STEP_CONFIG 2 // exec shim → supervisor: read the configuration
#define PODRUN_STEP_OOM 3 // exec shim → supervisor: set oom_score_adj
#define PODRUN_STEP_LIMITS 4 // exec shim → supervisor: set the limits of resources
#define PODRUN_STEP_ENTER 5 // exec shim → supervisor: enter the container
#define PODRUN_STEP_PRIVILEGES 6 // exec shim → supervisor: give up privileges
#define PODRUN_STEP_DIRECTORY 7 // exec shim → supervisor: change to the working directory
#define PODRUN_STEP_OUTSIDE 8 // exec shim → supervisor: keep the working directory in the container
#define PODRUN_STEP_BOUNDING 9 // exec shim → supervisor: bound the capabilities
#define PODRUN_STEP_STDIO 10 // exec shim → supervisor: hand over input and output
#define PODRUN_STEP_GROUPS 11 // exec shim → supervisor: set the groups
#define PODRUN_STEP_GROUP 12 // exec shim → supervisor: set the group
#define PODRUN_STEP_USER 13 // exec shim → supervisor: set the user
#define PODRUN_STEP_CAPABILITIES 14 // exec shim → supervisor: set the capabilities
#define PODRUN_STEP_FILTER 15 // exec shim → supervisor: load the filter for system calls
#define PODRUN_STEP_PROFILE 16 // exec shim → supervisor: change to the AppArmor profile or the SELinux label
#define PODRUN_STEP_FORK 17 // exec shim → supervisor: fork
#define PODRUN_STEP_SESSION 18 // exec shim → supervisor: begin a session
#define PODRUN_STEP_EXECUTE 19 // exec shim → supervisor: execute the program
#define PODRUN_STEP_INTERPRETER 20 // exec shim → supervisor: execute the program's interpreter, which does not exist
