package quadlet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// value returns a value as podman's command gets it: without quotes, and with specifiers and variables expanded.
func (p *parser) value(text string) (string, error) {
	text, err := p.specifiers(trimQuotes(text))
	if err != nil {
		return "", err
	}
	return p.variables(text)
}

// wordList splits the value of a key into words, as systemd does.
func (p *parser) wordList(text string) (list []string, err error) {
	split, err := splitWords(text)
	for _, word := range split {
		expanded, wordErr := p.specifiers(word)
		if wordErr == nil {
			expanded, wordErr = p.variables(expanded)
		}
		list, err = append(list, expanded), errors.Join(err, wordErr)
	}
	return list, err
}

// specifiers expands the specifiers of systemd.unit(5). The specifiers of the unit follow from its name.
func (p *parser) specifiers(text string) (string, error) {
	prefix, instance, _ := strings.Cut(p.stem, "@")
	short := strings.LastIndexByte(prefix, '-') + 1
	own := map[byte]string{
		'%': "%", 'p': prefix, 'P': prefix, 'i': instance, 'I': instance, 'j': prefix[short:], 'J': prefix[short:],
		'N': p.stem, 'n': p.stem + ".service",
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return "", errors.New("write %% for a percent sign")
		}
		value, ok := own[text[i]]
		if !ok {
			value, ok = p.set.Specifiers[text[i]]
		}
		if !ok {
			return "", fmt.Errorf("podrun does not know the specifier %%%c: write the value out, or %%%% for a percent sign", text[i])
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

// variables expands ${NAME}, and a $NAME that is the whole value, by the variables of [Service]: systemd would do so in
// podman's command line. $$ is a dollar sign.
func (p *parser) variables(text string) (string, error) {
	if name, ok := strings.CutPrefix(text, "$"); ok && isVariable(name) {
		text = "${" + name + "}"
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		text = after
		switch name, rest, closed := strings.Cut(strings.TrimPrefix(after, "{"), "}"); {
		case strings.HasPrefix(after, "$"):
			text = after[1:]
			b.WriteByte('$')
		case strings.HasPrefix(after, "{") && closed && isVariable(name):
			value, ok := p.variable(name)
			if !ok {
				return "", fmt.Errorf("systemd would replace ${%s}, and Environment= in [Service] does not set it; write $${%[1]s} to leave it to a shell in the container", name)
			}
			text = rest
			b.WriteString(value)
		default:
			b.WriteByte('$')
		}
	}
}

// isVariable reports whether a text can be the name of a variable.
func isVariable(name string) bool {
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// variable returns a variable of the unit.
func (p *parser) variable(name string) (value string, ok bool) {
	for _, a := range p.q.all("Service", "Environment") {
		list, _ := splitWords(a.Value)
		for _, word := range list {
			if n, v, isSet := strings.Cut(word, "="); isSet && n == name {
				value, ok = v, true
			}
		}
	}
	return value, ok
}

// escapes returns the characters after a backslash, without numbers (systemd.syntax(7), QUOTING).
func escapes() map[byte]string {
	return map[byte]string{
		'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\\': `\`, '"': `"`, '\'': "'", 's': " ", ';': ";",
	}
}

// splitWords splits a line into words (systemd.syntax(7), QUOTING). An unknown escape sequence stays as it is, as with
// systemd's lists of variables.
func splitWords(line string) (list []string, err error) {
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			text, n := unescape(line[i+1:])
			word.WriteString(text)
			i, inWord = i+n, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == ' ' || c == '\t':
			if inWord {
				list = append(list, word.String())
				word.Reset()
			}
			inWord = false
		case c == '"' || c == '\'':
			quote, inWord = c, true
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if inWord {
		list = append(list, word.String())
	}
	return list, nil
}

// unescape returns the text of an escape sequence without its backslash, and its length.
func unescape(text string) (string, int) {
	if plain, ok := escapes()[text[0]]; ok {
		return plain, 1
	}
	digits, base, start := 3, 8, 0
	switch text[0] {
	case 'x':
		digits, base, start = 2, 16, 1
	case 'u':
		digits, base, start = 4, 16, 1
	case 'U':
		digits, base, start = 8, 16, 1
	}
	if start+digits <= len(text) {
		n, err := strconv.ParseUint(text[start:start+digits], base, 32)
		switch {
		case err != nil || n == 0:
		case digits < 4 && n < 256:
			return string([]byte{byte(n)}), start + digits
		case digits > 3 && n <= utf8.MaxRune:
			return string(rune(n)), start + digits
		}
	}
	return `\` + text[:1], 1
}
