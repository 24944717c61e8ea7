package manifest

import "strings"

// expand replaces $(NAME) by the variable's value, as the kubelet does
// (third_party/forked/golang/expansion of Kubernetes): $$ is a $, so that $$(NAME)
// stays $(NAME); a reference to an unknown variable and anything else stay as
// they are.
func expand(s string, vars map[string]string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		switch rest := s[i+1:]; rest[0] {
		case '$':
			b.WriteByte('$')
			s = rest[1:]
		case '(':
			name, after, closed := strings.Cut(rest[1:], ")")
			if !closed {
				b.WriteString("$(")
				s = rest[1:]
				continue
			}
			if value, known := vars[name]; known {
				b.WriteString(value)
			} else {
				b.WriteString("$(" + name + ")")
			}
			s = after
		default:
			b.WriteByte('$')
			s = rest
		}
	}
}

func expandAll(list []string, vars map[string]string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = expand(s, vars)
	}
	return out
}
