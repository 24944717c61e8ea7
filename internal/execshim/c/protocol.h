// Code generated from internal/protocol/protocol.go by go generate. DO NOT EDIT.
#pragma once

// Inherited descriptors, and descriptors of the pod init that others open below /proc/PID/fd.
#define FD_SHIM_TARGET 3 // supervisor → exec shim: a pidfd of the container's first process; if it is that process itself, the shim's own program
#define FD_SHIM_CHANNEL 4 // supervisor → exec shim: the stream socket for the configuration and the replies

// Names of processes (/proc/PID/comm).
#define COMM_SHIM "podrun-execshim" // exec shim → supervisor: the exec shim, until it executes its program

// The configuration for the exec shim: a fixed head (struct config), then what it counts.
#define SHIM_MAGIC 0x70727431 // supervisor → exec shim: the first number of the configuration
#define SHIM_EXEC 1 // supervisor → exec shim: flag: enter the container by the pidfd; else libcontainer has done all but the last steps
#define SHIM_NO_NEW_PRIVS 2 // supervisor → exec shim: flag: set no_new_privs
#define SHIM_FILTER_EARLY 4 // supervisor → exec shim: flag: load the filter before the process is in the container
#define SHIM_SET_GROUPS 8 // supervisor → exec shim: flag: the user namespace permits to set groups
#define SHIM_LABEL 16 // supervisor → exec shim: flag: the profile is an SELinux label
#define MAX_SHIM_GROUPS 4096 // supervisor → exec shim: groups of a configuration
#define MAX_SHIM_FILTER 4096 // supervisor → exec shim: instructions of a filter (BPF_MAXINSNS)
#define MAX_SHIM_LIMITS 16 // supervisor → exec shim: limits of a configuration
#define MAX_SHIM_PATH 4096 // supervisor → exec shim: bytes of a path

// Replies of the exec shim: the first comes with a pid, the others, failed steps, with an errno.
#define SHIM_STARTED 1 // exec shim → supervisor: the process that will be the program is made
#define STEP_CONFIG 2 // exec shim → supervisor: read the configuration
#define STEP_OOM 3 // exec shim → supervisor: set oom_score_adj
#define STEP_LIMITS 4 // exec shim → supervisor: set the limits of resources
#define STEP_ENTER 5 // exec shim → supervisor: enter the container
#define STEP_PRIVILEGES 6 // exec shim → supervisor: give up privileges
#define STEP_DIRECTORY 7 // exec shim → supervisor: change to the working directory
#define STEP_OUTSIDE 8 // exec shim → supervisor: keep the working directory in the container
#define STEP_BOUNDING 9 // exec shim → supervisor: bound the capabilities
#define STEP_STDIO 10 // exec shim → supervisor: hand over input and output
#define STEP_GROUPS 11 // exec shim → supervisor: set the groups
#define STEP_GROUP 12 // exec shim → supervisor: set the group
#define STEP_USER 13 // exec shim → supervisor: set the user
#define STEP_CAPABILITIES 14 // exec shim → supervisor: set the capabilities
#define STEP_FILTER 15 // exec shim → supervisor: load the filter for system calls
#define STEP_PROFILE 16 // exec shim → supervisor: change to the AppArmor profile or the SELinux label
#define STEP_FORK 17 // exec shim → supervisor: fork
#define STEP_SESSION 18 // exec shim → supervisor: begin a session
#define STEP_EXECUTE 19 // exec shim → supervisor: execute the program
#define STEP_INTERPRETER 20 // exec shim → supervisor: execute the program's interpreter, which does not exist
