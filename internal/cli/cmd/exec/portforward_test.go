package exec

import (
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

func TestForwardedPorts(t *testing.T) {
	plan := &pod.Plan{Name: "web", Ports: []pod.Port{{Name: "http", Protocol: "TCP", Number: 80}, {Name: "dns", Protocol: "UDP", Number: 53}}}
	for _, c := range []struct {
		words string
		want  []forwardedPort
		err   string
	}{
		{"80", []forwardedPort{{80, 80}}, ""},
		{"8080:80 :443 0:22", []forwardedPort{{8080, 80}, {0, 443}, {0, 22}}, ""},
		{"http 8080:http :http", []forwardedPort{{80, 80}, {8080, 80}, {0, 80}}, ""},
		{"0", nil, "must be from 1 to 65535"},
		{"80:0", nil, "must be from 1 to 65535"},
		{"80:", nil, `does not have a named port ""`},
		{"70000:80", nil, "the local port must be from 0 to 65535"},
		{"x:80", nil, "the local port must be from 0 to 65535"},
		{"8080:https", nil, `pod web does not have a named port "https"`},
		{"dns", nil, "is UDP: port-forward supports TCP only"},
		{"1:2:3", nil, "named port"},
	} {
		got, err := forwardedPorts(plan, strings.Fields(c.words))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %s", c.words, err, c.err)
			}
			continue
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v: %v", c.words, got, c.want, err)
		}
	}
}

func TestListenAddresses(t *testing.T) {
	for lists, want := range map[string]string{
		"localhost":               "127.0.0.1 ::1",
		"localhost,10.0.0.1":      "127.0.0.1 ::1 10.0.0.1",
		"0.0.0.0 ::":              "0.0.0.0 ::",
		"127.0.0.1,localhost ::1": "127.0.0.1 ::1",
	} {
		got, err := listenAddresses(strings.Fields(lists))
		var words []string
		for _, a := range got {
			words = append(words, a.ip.String())
		}
		if err != nil || strings.Join(words, " ") != want {
			t.Errorf("%s: %v: %v", lists, words, err)
		}
	}
	if _, err := listenAddresses([]string{"example.org"}); err == nil {
		t.Error("a name was taken")
	}
}
