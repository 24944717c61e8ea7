// Package environ resolves the environment of a container's processes as the kubelet does when it
// creates the container (makeEnvironmentVariables in pkg/kubelet/kubelet_pods.go of Kubernetes):
// values, references to objects, fields and files, and the variables of Services.
//
// It is pure: the caller passes in what the references point to.
package environ

import "strings"

// expandWith replaces $(NAME) by the variable's value, as the kubelet does
// (third_party/forked/golang/expansion of Kubernetes): $$ is a $, so $$(NAME) becomes $(NAME).
// References to unknown variables and everything else stay unchanged. The first map that has a
// variable counts.
func expandWith(s string, vars ...map[string]string) string {
	out, _ := ExpandKnown(s, vars...)
	return out
}

// ExpandAll expands every string of a list.
func ExpandAll(list []string, vars ...map[string]string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = expandWith(s, vars...)
	}
	return out
}

// ExpandKnown expands s and also returns the first unknown variable, or "" (kubelet:
// ExpandContainerVolumeMounts, for subPathExpr).
func ExpandKnown(s string, vars ...map[string]string) (out, unknown string) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			b.WriteString(s)
			return b.String(), unknown
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
			value, known := lookUp(name, vars)
			if !known {
				value = "$(" + name + ")"
				if unknown == "" {
					unknown = name
				}
			}
			b.WriteString(value)
			s = after
		default:
			b.WriteByte('$')
			s = rest
		}
	}
}

// Literal returns a string that expands to s, whatever the variables are.
func Literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

func lookUp(name string, vars []map[string]string) (string, bool) {
	for _, m := range vars {
		if value, ok := m[name]; ok {
			return value, true
		}
	}
	return "", false
}
