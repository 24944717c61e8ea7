package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"exec web -- true", "default web  false [true]"},
		{"exec -i web -c main -n shop -- cat -n", "shop web main true [cat -n]"},
		{"exec --stdin --container main --namespace shop web.0 -- -- x", "shop web.0 main true [-- x]"},
		{"exec web -c exec -- exec", "default web exec false [exec]"},

		// These are for the whole front.
		{"", ""},
		{"ps", ""},
		{"exec", ""},
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
		if o, ok := parse(strings.Fields(c.words)); ok {
			got = fmt.Sprint(o.namespace, " ", o.pod, " ", o.container, " ", o.stdin, " ", o.command)
		}
		if got != c.want {
			t.Errorf("parse(%q) = %q, want %q", c.words, got, c.want)
		}
	}
}
