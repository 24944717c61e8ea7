// The main function of a program with parsers. It reads inputs: a kind, a length, and so many bytes. It answers each with a
// length and strings, each with its NUL. The program that includes this defines parse.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// parse parses an input and puts the answer. After the text comes a NUL, and not one byte more, so that reading it is found.
static void parse(unsigned kind, char *text, size_t n);

static FILE *out;

__attribute__((unused)) static void put(const char *text) { fwrite(text, 1, strlen(text) + 1, out); }

__attribute__((unused)) static void put_number(long long n) {
	fprintf(out, "%lld", n);
	fputc(0, out);
}

// without_end copies a text without the NUL after it.
__attribute__((unused)) static char *without_end(const char *text, size_t n) {
	char *copy = malloc(n ? n : 1);
	memcpy(copy, text, n);
	return copy;
}

int main(void) {
	struct {
		unsigned kind, length;
	} head;
	while (fread(&head, sizeof head, 1, stdin)) {
		char *text = malloc(head.length + 1UL), *answer;
		size_t size;
		if (head.length && !fread(text, head.length, 1, stdin))
			return 1;
		text[head.length] = 0;
		out = open_memstream(&answer, &size);
		parse(head.kind, text, head.length);
		fclose(out);
		unsigned length = size;
		fwrite(&length, sizeof length, 1, stdout);
		fwrite(answer, 1, size, stdout);
		fflush(stdout);
		free(answer);
		free(text);
	}
	return 0;
}
