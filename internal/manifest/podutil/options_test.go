package podutil

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/pod"
)

func TestUlimits(t *testing.T) {
	for text, want := range map[string][]pod.Ulimit{
		"nofile=1024":                       {{Name: "nofile", Soft: 1024, Hard: 1024}},
		"nofile=1024:4096, memlock=-1:-1":   {{Name: "nofile", Soft: 1024, Hard: 4096}, {Name: "memlock", Soft: math.MaxUint64, Hard: math.MaxUint64}},
		"rtprio=0:-1":                       {{Name: "rtprio", Soft: 0, Hard: math.MaxUint64}},
		"":                                  nil,
		"nofile":                            nil,
		"nofile=":                           nil,
		"nofile=1:":                         nil,
		"nofile=2:1":                        nil,
		"nofile=-1:1":                       nil,
		"nofile=-2":                         nil,
		"nofile=1,nofile=2":                 nil,
		"NOFILE=1":                          nil,
		"core=0":                            nil, // podrun keeps dumps in the container
		"nofile=9223372036854775808":        nil,
		"nofile=1:2:3":                      nil,
		"nofile=1024:4096,memlock=-1:-1,":   nil,
		"nofile=1024:4096;memlock=-1:-1,,x": nil,
	} {
		got, err := ParseUlimits(text)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}

// TestContainerOptions: one container's own annotation has precedence, and other keys are no options.
func TestContainerOptions(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"podrun.dev/user": "all", "user.podrun.dev/web": "own"}}}
	for container, want := range map[string]string{"web": "own", "db": "all"} {
		if got := ContainerOption(p, OptionUser, container); got != want {
			t.Errorf("%s: %q", container, got)
		}
	}
	for key, want := range map[string][2]string{
		"podrun.dev/groups": {"groups", ""}, "max-restarts.podrun.dev/web": {"max-restarts", "web"},
		"podrun.dev/network": {}, "network.podrun.dev/web": {}, "groups": {}, "user.example.com/web": {},
	} {
		option, container, ok := CutContainerOption(key)
		if ok != (want[0] != "") || ok && [2]string{option, container} != want {
			t.Errorf("%s: %s, %s, %t", key, option, container, ok)
		}
	}
}

// TestCheckContainerOption has values and whether they are valid.
func TestCheckContainerOption(t *testing.T) {
	for option, values := range map[string]map[string]bool{
		OptionUser:        {"www-data": true, "www-data:33": true, "1000:video": true, "": false, "a:": false, ":b": false, "a b": false, "a:b:c": false, "a,b": false},
		OptionGroups:      {"video": true, "video, 44": true, "": false, "a,,b": false, "a:b": false},
		OptionMaxRestarts: {"1": true, "3": true, "0": false, "-1": false, "x": false, "99999999999": false},
		OptionUlimits:     {"nofile=1": true, "nofile=x": false},
	} {
		for value, valid := range values {
			if err := CheckContainerOption(option, value); (err == nil) != valid {
				t.Errorf("%s %q: %v", option, value, err)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for text, valid := range map[string]bool{"host.docker.internal": true, "a, Gateway": true, "": false, "a,": false, "a_b": false, "a\tb": false} {
		if _, err := ParseHostNames(text); (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, valid := range map[string]bool{"my_db": true, "My.DB, x": true, "-": true, "": false, "a,": false, "a..b": false, "a b": false, "ä": false, strings.Repeat("a", 64): false, strings.Repeat("a.", 64) + "a": false} {
		if _, err := ParseNames(text); (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, valid := range map[string]bool{"1.1.1.1": true, "1.1.1.1, 2001:db8::1": true, "": false, "dns.example": false, "127.0.0.53": false, "::1": false, "0.0.0.0": false, "fe80::1%eth0": false} {
		if _, err := ParseDNSServers(text); (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
	}
}
