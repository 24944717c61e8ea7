package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseExec(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"exec web -- true", "default web  false [true]"},
		{"exec -i web -c main -n shop -- cat -n", "shop web main true [cat -n]"},
		{"exec --stdin --container main --namespace shop web.0 -- -- x", "shop web.0 main true [-- x]"},
		{"exec web -c exec -- exec", "default web exec false [exec]"},

		// The CLI handles these.
		{"exec", ""},
		{"exec web -n a -n b -- true", ""},
		{"exec web", ""},
		{"exec web true", ""},
		{"exec web --", ""},
		{"exec -- true", ""},
		{"exec web db -- true", ""},
		{"exec deployment/web -- true", ""},
		{"exec ../web -- true", ""},
		{"exec .. -- true", ""},
		{"exec Web -- true", ""},
		{"exec web -n ../x -- true", ""},
		{"exec web -n", ""},
		{"exec -it web -- sh", ""},
		{"exec -t web -- sh", ""},
		{"exec web --container=main -- true", ""},
		{"exec web -u 1000 -- true", ""},
		{"exec web -e A=B -- env", ""},
		{"exec -f web.yaml -- true", ""},
		{"exec --help", ""},
		{"exec web -h -- true", ""},
	} {
		got := ""
		if o, ok := parseExec(strings.Fields(c.words)[1:]); ok {
			got = fmt.Sprint(o.namespace, " ", o.pod, " ", o.container, " ", o.stdin, " ", o.command)
		}
		if got != c.want {
			t.Errorf("parseExec(%q) = %q, want %q", c.words, got, c.want)
		}
	}
}

// TestNamespaceOfTheEnvironment checks that the environment's namespace is the default, and that an invalid
// one is left to the CLI.
func TestNamespaceOfTheEnvironment(t *testing.T) {
	parse := func(words ...string) string {
		o, ok := parseExec(append(words, "web", "--", "true"))
		l, lok := parseLogs(append(words, "web"))
		home, _, eok := parseEnding(append(words, "web"))
		if ok != lok || ok != eok || ok && (o.namespace != l.namespace || o.namespace != home) {
			t.Errorf("%v: exec %q %t, logs %q %t, down %q %t", words, o.namespace, ok, l.namespace, lok, home, eok)
		}
		if !ok {
			return ""
		}
		return o.namespace
	}
	for value, want := range map[string]string{"shop": "shop", "": "default", "Shop": "", "a.b": "", "-a": "", "../x": ""} {
		t.Setenv("PODRUN_NAMESPACE", value)
		if got := parse(); got != want {
			t.Errorf("PODRUN_NAMESPACE=%q: %q, want %q", value, got, want)
		}
		if got := parse("-n", "other"); got != "other" {
			t.Errorf("PODRUN_NAMESPACE=%q, -n other: %q", value, got)
		}
	}
}

func TestParseLogs(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"web", "{default web  -1 0 false false}"},
		{"-n shop --tail 0 web -c main --timestamps -p", "{shop web main 0 0 true true}"},
		{"web -t", "{default web  -1 0 true false}"},
		{"web --previous --container main --namespace shop --since 90s --tail 12", "{shop web main 12 90000000000 false true}"},

		// The CLI handles these.
		{"", ""},
		{"web db", ""},
		{"pod/web", ""},
		{"deployment/web", ""},
		{"-f web", ""},
		{"web -l app=web", ""},
		{"web --tail", ""},
		{"web --tail -1", ""},
		{"web --tail=5", ""},
		{"web --tail 010", ""},
		{"web --tail 0x10", ""},
		{"web --tail many", ""},
		{"web --since 0s", ""},
		{"web --since -5m", ""},
		{"web --since 5", ""},
		{"web -c", ""},
		{"web -c -p", ""},
		{"web --tail 1 --tail 2", ""},
		{"web -n a --namespace b", ""},
		{"web --all-containers", ""},
		{"web --prefix", ""},
		{"web --raw", ""},
		{"web --", ""},
		{"--help", ""},
		{"../web", ""},
	} {
		got := ""
		if o, ok := parseLogs(strings.Fields(c.words)); ok {
			got = fmt.Sprintf("%v", o)
		}
		if got != c.want {
			t.Errorf("parseLogs(%q) = %q, want %q", c.words, got, c.want)
		}
	}
}

func TestParseEnding(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"web", "default web"},
		{"-n shop web", "shop web"},
		{"web.0 --namespace shop", "shop web.0"},

		// The CLI handles these.
		{"", ""},
		{"web db", ""},
		{"web -n", ""},
		{"web -n a -n b", ""},
		{"web -n ..", ""},
		{"-f web.yaml", ""},
		{"web --force", ""},
		{"web --grace-period 5", ""},
		{"web --volumes", ""},
		{"pod/web", ""},
		{"deployment/web", ""},
		{"..", ""},
		{"Web", ""},
		{"-- web", ""},
		{"--help", ""},
		{"web -h", ""},
	} {
		got := ""
		if namespace, name, ok := parseEnding(strings.Fields(c.words)); ok {
			got = namespace + " " + name
		}
		if got != c.want {
			t.Errorf("parseEnding(%q) = %q, want %q", c.words, got, c.want)
		}
	}
}

func TestParseList(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"ps", "{default false false}"},
		{"ps -A", "{default true false}"},
		{"get pods --all-namespaces --no-headers", "{default true true}"},
		{"get -n shop po", "{shop false false}"},
		{"get pod", "{default false false}"},

		// The CLI handles these.
		{"ps web", ""},
		{"ps -a", ""},
		{"ps -w", ""},
		{"ps -o wide", ""},
		{"ps -n", ""},
		{"ps -n ..", ""},
		{"ps -A -A", ""},
		{"ps pods", ""},
		{"ps -h", ""},
		{"get", ""},
		{"get web", ""},
		{"get pods web", ""},
		{"get pods,services", ""},
		{"get services", ""},
		{"get all", ""},
		{"get pods -l app=web", ""},
		{"get pods --show-labels", ""},
	} {
		got := ""
		words := strings.Fields(c.words)
		if o, ok := parseList(words[0], words[1:]); ok {
			got = fmt.Sprintf("%v", o)
		}
		if got != c.want {
			t.Errorf("parseList(%q) = %q, want %q", c.words, got, c.want)
		}
	}
}
