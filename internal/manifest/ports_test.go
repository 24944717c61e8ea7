package manifest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// onePod returns a manifest with the rest of its spec, in flow style.
func onePod(annotations, spec string) []byte {
	return []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {" + annotations + "}}\nspec: {" + spec + "}\n")
}

const (
	tcpPort = "{containerPort: 80}"
	app     = "containers: [{name: c, image: i, ports: ["
)

func TestHostPortsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ annotations, spec, want string }{
		"SCTP":                  {"", app + "{containerPort: 80, hostPort: 80, protocol: SCTP}]}]", "spec.containers[0].ports[0].hostPort: Forbidden: supports TCP and UDP only"},
		"too high":              {"", app + "{containerPort: 80, hostPort: 65536}]}]", "must be between 1 and 65535"},
		"hostIP":                {"", app + "{containerPort: 80, hostPort: 80, hostIP: localhost}]}]", `hostIP: Invalid value: "localhost": must be a valid IP address`},
		"twice":                 {"", app + "{containerPort: 80, hostPort: 80},{containerPort: 81, hostPort: 80}]}]", `ports[1].hostPort: Duplicate value: "TCP//80"`},
		"twice the same":        {"", app + "{containerPort: 80, hostPort: 80},{containerPort: 80, hostPort: 80}]}]", `ports[1].hostPort: Duplicate value: "TCP//80"`},
		"two containers":        {"", "containers: [{name: a, image: i, ports: [{containerPort: 80, hostPort: 80}]}, {name: b, image: i, ports: [{containerPort: 81, hostPort: 80}]}]", `spec.containers[1].ports[0].hostPort: Duplicate`},
		"all and one":           {"", app + "{containerPort: 80, hostPort: 80},{containerPort: 81, hostPort: 80, hostIP: 127.0.0.1}]}]", `Duplicate value: "TCP/127.0.0.1/80"`},
		"all of a family":       {"", app + "{containerPort: 80, hostPort: 80, hostIP: 0.0.0.0},{containerPort: 81, hostPort: 80, hostIP: 127.0.0.1}]}]", "Duplicate"},
		"a sidecar":             {"", "initContainers: [{name: s, image: i, restartPolicy: Always, ports: [{containerPort: 80, hostPort: 80}]}], " + app + "{containerPort: 80, hostPort: 80}]}]", "spec.containers[0].ports[0].hostPort: Duplicate"},
		"an init, elsewhere":    {"", "initContainers: [{name: s, image: i, ports: [{containerPort: 81, hostPort: 80}]}], " + app + "{containerPort: 80, hostPort: 80}]}]", "spec.containers[0].ports[0].hostPort: Duplicate"},
		"other in host network": {"", "hostNetwork: true, " + app + "{containerPort: 80, hostPort: 81}]}]", "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"},
		"the same by wish":      {"podrun.dev/network: host", app + "{containerPort: 80, hostPort: 81}]}]", "must match `containerPort`"},
		"mode":                  {"podrun.dev/network: bridge", app + "]}]", `metadata.annotations[podrun.dev/network]: Unsupported value: "bridge": supported values: "auto", "masquerade", "tproxy"`},
		"mode and host network": {"podrun.dev/network: none", "hostNetwork: true, " + app + "]}]", "must be host or unset"},
		"sysctl of the host":    {"", "hostNetwork: true, securityContext: {sysctls: [{name: net.ipv4.ip_local_port_range, value: 1024 65535}]}, " + app + "]}]", "sysctls[0].name: Invalid value: \"net.ipv4.ip_local_port_range\": may not be specified when 'hostNetwork' is set to true"},
		"no network":            {"podrun.dev/network: none", app + "{containerPort: 80, hostPort: 80}]}]", "hostPort: Forbidden: cannot be used with the network none"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := manifest.Load("f", onePod(c.annotations, c.spec)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestPortsOfThePlan(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, spec string
		want, published   []pod.Port
	}{
		"informative": {"", app + "{name: http, containerPort: 80}]}]", []pod.Port{{Container: "c", Name: "http", Protocol: "TCP", Number: 80}}, nil},
		"each family": {"", app + "{containerPort: 80, hostPort: 8080, hostIP: 127.0.0.1}, {containerPort: 80, hostPort: 8080, hostIP: '::1'}, {containerPort: 80, hostPort: 8080, protocol: UDP}]}]",
			nil, []pod.Port{{Container: "c", Protocol: "TCP", Number: 80, HostPort: 8080, HostIP: "127.0.0.1"}, {Container: "c", Protocol: "TCP", Number: 80, HostPort: 8080, HostIP: "::1"}, {Container: "c", Protocol: "UDP", Number: 80, HostPort: 8080}}},
		"an init leaves its way in": {"", "initContainers: [{name: s, image: i, ports: [{containerPort: 80, hostPort: 80}]}], " + app + "{containerPort: 80, hostPort: 80}]}]",
			nil, []pod.Port{{Container: "s", Protocol: "TCP", Number: 80, HostPort: 80}}},
		"hostNetwork": {"", "hostNetwork: true, " + app + tcpPort + "]}]", []pod.Port{{Container: "c", Protocol: "TCP", Number: 80, HostPort: 80}}, nil},
		"mapped":      {"", app + "{containerPort: 80, hostPort: 80, hostIP: '::ffff:127.0.0.1'}]}]", nil, []pod.Port{{Container: "c", Protocol: "TCP", Number: 80, HostPort: 80, HostIP: "127.0.0.1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Load("f", onePod(c.annotations, c.spec))
			if err != nil {
				t.Fatal(err)
			}
			plan := &pod.Plan{Ports: podutil.PlanPorts(&objects[0].Pod.Spec), Network: podutil.NetworkMode(objects[0].Pod)}
			if c.want != nil && !slices.Equal(plan.Ports, c.want) {
				t.Errorf("ports %+v, want %+v", plan.Ports, c.want)
			}
			if got := plan.Published(); !slices.Equal(got, c.published) {
				t.Errorf("published %+v, want %+v", got, c.published)
			}
		})
	}
}

// TestAskNetwork: --network applies to pods that set no network.
func TestAskNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, spec, ask string
		want                   pod.NetworkMode
		err                    string
	}{
		"taken":        {"", app + tcpPort + "]}]", "netstack", pod.NetworkNetstack, ""},
		"said already": {"podrun.dev/network: none", app + "]}]", "tproxy", pod.NetworkNone, ""},
		"hostNetwork":  {"", "hostNetwork: true, " + app + "]}]", "none", pod.NetworkHost, ""},
		"auto":         {"podrun.dev/network: auto", app + "]}]", "none", pod.NetworkAuto, ""},
		"host":         {"", app + tcpPort + "]}]", "host", pod.NetworkHost, ""},
		"cannot be":    {"", app + "{containerPort: 80, hostPort: 81}]}]", "host", "", "must match `containerPort`"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Load("f", onePod(c.annotations, c.spec))
			if err != nil {
				t.Fatal(err)
			}
			err = manifest.SetNetwork(&objects[0], c.ask)
			switch {
			case c.err != "":
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %s", err, c.err)
				}
			case err != nil || podutil.NetworkMode(objects[0].Pod) != c.want:
				t.Errorf("%s, want %s: %v", podutil.NetworkMode(objects[0].Pod), c.want, err)
			}
		})
	}
}

// A published port needs a port of the host. 0.0.0.0 stands for all addresses, as with podman.
func TestPublish(t *testing.T) {
	for _, text := range []string{"80", "80/udp", "::80", "127.0.0.1::80", "[::1]::80"} {
		if got, err := manifest.ParsePublishedPort(text); err == nil || !strings.Contains(err.Error(), "write HOSTPORT:PORT") {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{"0.0.0.0:81:80": "", "127.0.0.1:81:80": "127.0.0.1"} {
		objects, err := manifest.Load("f", onePod("", app+tcpPort+"]}]"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := manifest.ParsePublishedPort(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := manifest.Publish(objects, []podutil.PublishedPort{p}); err != nil {
			t.Fatal(err)
		}
		if got := objects[0].Pod.Spec.Containers[0].Ports[0]; got.HostIP != want || got.HostPort != 81 {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
