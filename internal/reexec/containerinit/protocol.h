// Code generated from internal/protocol/protocol.go by go generate. DO NOT EDIT.
#pragma once

// Values of _LIBCONTAINER_LOGLEVEL, which are levels for libcontainer, too.
#define PODRUN_PLAIN_LOG_LEVEL "+2" // supervisor → C constructor: libcontainer logs errors; the container is plain, and its init is the one in C
