#include "json.h"

#include <string.h>

enum { max_depth = 64 };

void podrun_json_fail(struct json *j, const char *wrong) {
	if (!j->wrong)
		j->wrong = wrong;
}

// peek returns the next character that is not white space, or 0.
static char peek(struct json *j) {
	if (j->wrong)
		return 0;
	while (j->next < j->end && strchr(" \t\r\n", *j->next) && *j->next)
		j->next++;
	return j->next < j->end ? *j->next : 0;
}

// take reads one character, if it is c.
static bool take(struct json *j, char c) {
	if (peek(j) != c || !c)
		return false;
	j->next++;
	return true;
}

// word reads a word, if it is next.
static bool word(struct json *j, const char *text) {
	size_t n = strlen(text);
	if (peek(j) != *text || (size_t)(j->end - j->next) < n || memcmp(j->next, text, n))
		return false;
	j->next += n;
	return true;
}

void podrun_json_open(struct json *j, char bracket) {
	if (!take(j, bracket))
		podrun_json_fail(j, bracket == '{' ? "an object is expected" : "a list is expected");
	else if (++j->depth > max_depth)
		podrun_json_fail(j, "it is nested too deeply");
	j->first = true;
}

// item reports whether another member or element follows.
static bool item(struct json *j, char close) {
	bool first = j->first;
	j->first = false;
	if (take(j, close)) {
		j->depth--;
		return false;
	}
	if (!first && !take(j, ','))
		podrun_json_fail(j, "a comma is expected");
	return !j->wrong;
}

bool podrun_json_element(struct json *j) { return item(j, ']'); }

char *podrun_json_member(struct json *j) {
	if (!item(j, '}'))
		return NULL;
	char *name = podrun_json_string(j);
	if (!take(j, ':'))
		podrun_json_fail(j, "a colon is expected");
	return j->wrong ? NULL : name;
}

// hex4 reads four hexadecimal digits.
static unsigned hex4(struct json *j) {
	unsigned v = 0;
	for (int i = 0; i < 4; i++) {
		char c = j->next < j->end ? *j->next++ : 0;
		unsigned digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 16;
		if (digit > 15) {
			podrun_json_fail(j, "a character's number is expected");
			return 0;
		}
		v = v << 4 | digit;
	}
	return v;
}

// unicode reads the rest of \u and writes the character as UTF-8, which is not longer.
static char *unicode(struct json *j, char *to) {
	unsigned v = hex4(j);
	if (v >= 0xd800 && v < 0xdc00 && j->end - j->next >= 6 && j->next[0] == '\\' && j->next[1] == 'u') {
		j->next += 2;
		unsigned low = hex4(j);
		v = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00) : 0;
	}
	if (!v || (v >= 0xd800 && v < 0xe000)) {
		podrun_json_fail(j, "a string has a character that is none");
		return to;
	}
	if (v < 0x80) {
		*to++ = v;
		return to;
	}
	if (v < 0x800) {
		*to++ = 0xc0 | v >> 6;
	} else {
		if (v < 0x10000) {
			*to++ = 0xe0 | v >> 12;
		} else {
			*to++ = 0xf0 | v >> 18;
			*to++ = 0x80 | (v >> 12 & 0x3f);
		}
		*to++ = 0x80 | (v >> 6 & 0x3f);
	}
	*to++ = 0x80 | (v & 0x3f);
	return to;
}

char *podrun_json_string(struct json *j) {
	if (!take(j, '"')) {
		podrun_json_fail(j, "a string is expected");
		return NULL;
	}
	char *text = j->next, *to = j->next;
	static const char escapes[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
	while (j->next < j->end && !j->wrong) {
		char c = *j->next++;
		if (c == '"') {
			*to = 0;
			return text;
		}
		if ((unsigned char)c < ' ')
			break;
		if (c != '\\') {
			*to++ = c;
			continue;
		}
		c = j->next < j->end ? *j->next++ : 0;
		const char *at = c ? strchr(escapes, c) : NULL;
		if (at)
			*to++ = plain[at - escapes];
		else if (c == 'u')
			to = unicode(j, to);
		else
			break;
	}
	podrun_json_fail(j, "a string does not end");
	return NULL;
}

uint64_t podrun_json_number(struct json *j, uint64_t max) {
	uint64_t v = 0;
	char c = peek(j), *from = j->next;
	if (c < '0' || c > '9')
		podrun_json_fail(j, "a number is expected");
	for (; !j->wrong && j->next < j->end && *j->next >= '0' && *j->next <= '9'; j->next++) {
		unsigned digit = *j->next - '0';
		if (v > (max - digit) / 10 || digit > max)
			podrun_json_fail(j, "a number is too large");
		else
			v = v * 10 + digit;
	}
	if (c == '0' && j->next - from > 1)
		podrun_json_fail(j, "a number begins with 0");
	return j->wrong ? 0 : v;
}

bool podrun_json_bool(struct json *j) {
	if (word(j, "true"))
		return true;
	if (!word(j, "false"))
		podrun_json_fail(j, "true or false is expected");
	return false;
}

bool podrun_json_null(struct json *j) { return word(j, "null"); }

// skip_one reads one of some characters, if it is next.
static bool skip_one(struct json *j, const char *characters) {
	bool found = j->next < j->end && *j->next && strchr(characters, *j->next);
	j->next += found;
	return found;
}

static void skip_digits(struct json *j) {
	if (!skip_one(j, "0123456789"))
		podrun_json_fail(j, "a value is expected");
	while (skip_one(j, "0123456789"))
		;
}

// skip_number reads a number of any form.
static void skip_number(struct json *j) {
	skip_one(j, "-");
	if (!skip_one(j, "0"))
		skip_digits(j);
	if (skip_one(j, "."))
		skip_digits(j);
	if (skip_one(j, "eE")) {
		skip_one(j, "+-");
		skip_digits(j);
	}
}

bool podrun_json_empty(struct json *j) {
	bool empty = true;
	switch (peek(j)) {
	case '{':
		podrun_json_open(j, '{');
		while (podrun_json_member(j))
			empty &= podrun_json_empty(j);
		return empty;
	case '[':
		podrun_json_open(j, '[');
		while (podrun_json_element(j))
			empty &= podrun_json_empty(j);
		return empty;
	case '"': {
		char *text = podrun_json_string(j);
		return text && !*text;
	}
	}
	if (podrun_json_null(j) || word(j, "false"))
		return true;
	if (word(j, "true"))
		return false;
	char *from = j->next;
	skip_number(j);
	return !j->wrong && j->next - from == 1 && *from == '0';
}

void podrun_json_skip(struct json *j) { podrun_json_empty(j); }
