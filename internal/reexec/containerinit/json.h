// A reader of JSON that changes its text in place and allocates nothing. After the first thing that is not as expected
// every function returns 0 or NULL, so that a caller needs to look at wrong only once.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
	char *next, *end;
	int depth;        // open objects and arrays
	bool first;       // no member or element of the innermost of them has been read
	const char *wrong; // what was not as expected, or NULL
};

// podrun_json_open reads the beginning of an object ('{') or of an array ('[').
void podrun_json_open(struct json *j, char bracket);

// podrun_json_member reads the name of an object's next member, whose value the caller must read. It returns NULL after
// the last one. podrun_json_element does the same for an array.
char *podrun_json_member(struct json *j);
bool podrun_json_element(struct json *j);

// podrun_json_string reads a string. A string with a NUL is none.
char *podrun_json_string(struct json *j);

// podrun_json_number reads an integer between 0 and max.
uint64_t podrun_json_number(struct json *j, uint64_t max);

// podrun_json_bool reads true or false.
bool podrun_json_bool(struct json *j);

// podrun_json_null reads a null, if there is one.
bool podrun_json_null(struct json *j);

// podrun_json_skip reads any value.
void podrun_json_skip(struct json *j);

// podrun_json_empty reads a value and returns whether it is one that Go sets without being told: null, false, 0, "", or a
// list or an object with such values only.
bool podrun_json_empty(struct json *j);

// podrun_json_fail records that something is not as expected.
void podrun_json_fail(struct json *j, const char *wrong);
