package compose

import (
	"maps"
	"slices"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

func TestState(t *testing.T) {
	running := pod.ContainerStatus{State: pod.State{Running: &pod.RunningAt{}}}
	waiting := pod.ContainerStatus{State: pod.State{Waiting: &pod.Waiting{Reason: "CrashLoopBackOff"}}}
	for want, st := range map[string]*pod.Status{
		"running":    {Phase: pod.Running, Containers: []pod.ContainerStatus{running}},
		"restarting": {Phase: pod.Running, Containers: []pod.ContainerStatus{running, waiting}},
		"created":    {Phase: pod.Pending, Containers: []pod.ContainerStatus{waiting}},
		"exited":     {Phase: pod.Failed},
	} {
		if got := state(st); got != want {
			t.Errorf("%s: %s", want, got)
		}
	}
}

// TestImages: each image once, and for pull without images that are built.
func TestImages(t *testing.T) {
	r := api.Result{
		Services: []api.Service{{Name: "a", Image: "x"}, {Name: "b", Image: "built"}, {Name: "c", Image: "x"}},
		Builds:   []api.Build{{Service: "b", Image: "built"}},
	}
	if got := images(r, true); !slices.Equal(got, []string{"built", "x"}) {
		t.Errorf("all: %v", got)
	}
	if got := images(r, false); !slices.Equal(got, []string{"x"}) {
		t.Errorf("to pull: %v", got)
	}
}

func TestPorts(t *testing.T) {
	list := []publisher{{TargetPort: 80}, {URL: "127.0.0.1", TargetPort: 80, PublishedPort: 8080, Protocol: "tcp"}, {TargetPort: 53, PublishedPort: 5353, Protocol: "udp"}}
	if got := ports(list); got != "127.0.0.1:8080->80/tcp, :5353->53/udp" {
		t.Error(got)
	}
}

// TestLabels: a service has one pod or numbered ones, or shares the pod of another.
func TestLabels(t *testing.T) {
	at := func(name, service, container string) member {
		return member{Pod: store.Pod{Name: name}, service: service, container: container}
	}
	got := labels([]member{at("web-1", "web", "web"), at("web-12", "web", "web"), at("my-db", "My_DB", "my-db"), at("web-2x", "web", "web"), at("vpn-2", "client", "client")})
	want := cmdutil.Labels{
		{"web-1", "web"}: "web-1    ", {"web-12", "web"}: "web-12   ", {"my-db", "my-db"}: "My_DB-1  ", {"web-2x", "web"}: "web-1    ", {"vpn-2", "client"}: "client-1 ",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
