package build_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
)

// TestBuildAsked compares the probes and hooks of one plan, with every default.
func TestBuildAsked(t *testing.T) {
	plan := mustBuild(t, `apiVersion: v1
kind: Pod
metadata: {name: p, annotations: {podrun.dev/hook-reason: "true"}}
spec:
  os: {name: linux}
  readinessGates: [{conditionType: example.com/open}, {conditionType: b}]
  initContainers:
  - {name: i, image: a, restartPolicy: OnFailure}
  - name: s
    image: a
    restartPolicy: Always
    startupProbe: {grpc: {port: 9000}}
    readinessProbe: {grpc: {port: 9000, service: x, mode: TLS}, successThreshold: 2}
  containers:
  - name: a
    image: a
    ports: [{name: web, containerPort: 8080}]
    env: [{name: A, value: x}, {name: B, value: $(A)y}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    livenessProbe:
      exec: {command: [test, $(A), $(B), $(C), $(D), $$(A)]}
      initialDelaySeconds: 1
      timeoutSeconds: 2
      periodSeconds: 3
      failureThreshold: 4
      terminationGracePeriodSeconds: 5
    readinessProbe:
      httpGet: {port: web, httpHeaders: [{name: X, value: "1"}, {name: X, value: "2"}]}
    startupProbe: {tcpSocket: {port: web, host: localhost}}
    lifecycle:
      postStart: {exec: {command: [echo, $(A)]}}
      preStop: {httpGet: {port: 9, path: /stop, scheme: HTTPS, host: h}}
      stopSignal: SIGUSR1
  - name: b
    image: a
    restartPolicy: Never
    restartPolicyRules:
    - {action: Restart, exitCodes: {operator: In, values: [1, 42]}}
    - {action: RestartAllContainers, exitCodes: {operator: NotIn, values: [0]}}
    lifecycle: {postStart: {sleep: {seconds: 3}}, preStop: {httpGet: {port: 9, protocol: HTTP2}}}
  - {name: c, image: a, restartPolicy: Always}
`, pod.Image{Cmd: []string{"run"}, StopSignal: "SIGQUIT"})
	type asked struct {
		Liveness, Readiness, Startup *pod.Probe
		PostStart, PreStop           *pod.Handler
		StopSignal                   string
		Policy                       pod.RestartPolicy
		Rules                        []pod.RestartRule
	}
	probe := func(h pod.Handler) *pod.Probe {
		return &pod.Probe{Handler: h, PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
	}
	twice := probe(pod.Handler{GRPC: &pod.GRPC{Port: 9000, Service: "x", TLS: true}})
	twice.SuccessThreshold = 2
	want := map[string]asked{
		"i": {StopSignal: "SIGQUIT", Policy: pod.RestartOnFailure},
		"s": {StopSignal: "SIGQUIT", Startup: probe(pod.Handler{GRPC: &pod.GRPC{Port: 9000}}), Readiness: twice},
		"a": {
			Liveness: &pod.Probe{
				Handler:             pod.Handler{Exec: []string{"test", "x", "$(A)y", "", "$(D)", "$(A)"}},
				InitialDelaySeconds: 1, TimeoutSeconds: 2, PeriodSeconds: 3, SuccessThreshold: 1, FailureThreshold: 4, GraceSeconds: new(int64(5)),
			},
			Readiness:  probe(pod.Handler{HTTP: &pod.HTTPGet{Port: 8080, Path: "/", Headers: []pod.Header{{Name: "X", Value: "1"}, {Name: "X", Value: "2"}}}}),
			Startup:    probe(pod.Handler{TCP: &pod.TCPSocket{Host: "localhost", Port: 8080}}),
			PostStart:  &pod.Handler{Exec: []string{"echo", "$(A)"}},
			PreStop:    &pod.Handler{HTTP: &pod.HTTPGet{TLS: true, Host: "h", Port: 9, Path: "/stop"}},
			StopSignal: "SIGUSR1",
		},
		"b": {
			PostStart:  &pod.Handler{SleepSeconds: new(int64(3))},
			PreStop:    &pod.Handler{HTTP: &pod.HTTPGet{Port: 9, Path: "/", HTTP2: true}},
			StopSignal: "SIGQUIT", Policy: pod.RestartNever,
			Rules: []pod.RestartRule{{ExitCodes: []int{1, 42}}, {NotIn: true, ExitCodes: []int{0}, All: true}},
		},
		"c": {StopSignal: "SIGQUIT", Policy: pod.RestartAlways},
	}
	got := map[string]asked{}
	for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for _, c := range list {
			if c.Sidecar != (c.Name == "s") {
				t.Errorf("%s is a sidecar: %t", c.Name, c.Sidecar)
			}
			got[c.Name] = asked{c.Liveness, c.Readiness, c.Startup, c.PostStart, c.PreStop, c.StopSignal, c.RestartPolicy, c.RestartRules}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"example.com/open", "b"}, plan.ReadinessGates); diff != "" || !plan.HookReason {
		t.Errorf("hooks get the reason: %t\n%s", plan.HookReason, diff)
	}
}

// TestLaunchPriority: it is set by either variable, or by the list.
func TestLaunchPriority(t *testing.T) {
	const spec = `spec:
  containers:
  - {name: a, image: i}
  - {name: b, image: i, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "-2147483647"}]}
  - {name: c, image: i, env: [{name: KRUISE_CONTAINER_LAUNCH_PRIORITY, value: "2147483647"}]}
`
	for meta, want := range map[string][]int{
		"{name: p}": {0, -2147483647, 2147483647},
		"{name: p, annotations: {apps.kruise.io/container-launch-priority: Ordered}}": {0, -1, -2},
		"{name: p, labels: {apps.kruise.io/container-launch-priority: Ordered}}":      {0, -1, -2},
	} {
		plan := mustBuild(t, "apiVersion: v1\nkind: Pod\nmetadata: "+meta+"\n"+spec, pod.Image{Cmd: []string{"run"}})
		var got []int
		for _, c := range plan.Containers {
			got = append(got, c.Priority)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", meta, diff)
		}
	}
}
