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

// json_open reads the beginning of an object ('{') or of an array ('[').
void json_open(struct json *j, char bracket);

// json_member reads the name of an object's next member, whose value the caller must read. It returns NULL after
// the last one. json_element does the same for an array.
char *json_member(struct json *j);
bool json_element(struct json *j);

// json_string reads a string. A string with a NUL is none.
char *json_string(struct json *j);

// json_number reads an integer between 0 and max.
uint64_t json_number(struct json *j, uint64_t max);

// json_bool reads true or false.
bool json_bool(struct json *j);

// json_null reads a null, if there is one.
bool json_null(struct json *j);

// json_skip reads any value.
void json_skip(struct json *j);

// json_empty reads a value and returns whether it is one that Go sets without being told: null, false, 0, "", or a
// list or an object with such values only.
bool json_empty(struct json *j);

// json_fail records that something is not as expected.
void json_fail(struct json *j, const char *wrong);
