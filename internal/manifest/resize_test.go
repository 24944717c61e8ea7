package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/validation"
	"github.com/podrun/podrun/internal/pod"
)

const before = `{
  initContainers: [
    {name: prepare, image: b, resources: {limits: {memory: 8Mi}}},
    {name: side, image: b, restartPolicy: Always, resources: {requests: {cpu: 10m}}}],
  containers: [
    {name: web, image: b, command: [run], resources: {requests: {cpu: 100m, memory: 16Mi}, limits: {memory: 32Mi}},
     resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]},
    {name: log, image: b}]}`

// after returns a manifest that differs in one place.
func after(t *testing.T, old, new string) string {
	t.Helper()
	if strings.Count(before, old) != 1 {
		t.Fatalf("%q is there %d times", old, strings.Count(before, old))
	}
	return strings.Replace(before, old, new, 1)
}

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           Difference
	}{
		{"nothing", "cpu: 100m", "cpu: 0.1", Difference{}},
		{"a request", "cpu: 100m", "cpu: 200m", Difference{Resources: true}},
		{"a limit that was not there", "limits: {memory: 32Mi}", "limits: {memory: 32Mi, cpu: 1}", Difference{Resources: true}},
		{"resources where there were none", "{name: log, image: b}", "{name: log, image: b, resources: {limits: {cpu: 1}}}", Difference{Resources: true}},
		{"resources of a sidecar", "cpu: 10m", "cpu: 11m", Difference{Resources: true}},
		{"pod-level resources", "  containers: [", "  resources: {limits: {cpu: 2}}, containers: [", Difference{Resources: true}},
		{"an image", "{name: log, image: b}", "{name: log, image: c}", Difference{Images: []string{"log"}, RecordOnly: true}},
		{"an image, and how it is pulled", "{name: log, image: b}", "{name: log, image: 'c:latest'}", Difference{Images: []string{"log"}, RecordOnly: true}},
		{"a command", "command: [run]", "command: [go]", Difference{Immutable: []string{"spec.containers[0].command"}}},
		{"an argument more", "command: [run]", "command: [run, go]", Difference{Immutable: []string{"spec.containers[0].command"}}},
		{"a container more", "{name: log, image: b}", "{name: log, image: b}, {name: new, image: b}", Difference{Immutable: []string{"spec.containers[2]"}}},
		{"another policy and another name", "{name: log, image: b}]}", "{name: other, image: b}], restartPolicy: Never}",
			Difference{Immutable: []string{"spec.containers[1].name", "spec.restartPolicy"}}},
		{"a volume", "{name: log, image: b}]}", "{name: log, image: b}], volumes: [{name: v}]}", Difference{Immutable: []string{"spec.volumes"}}},
		{"a deadline", "{name: log, image: b}]}", "{name: log, image: b}], activeDeadlineSeconds: 60}", Difference{MutableSpec: true}},
		{"a toleration more", "{name: log, image: b}]}", "{name: log, image: b}], tolerations: [{key: a, operator: Exists}]}", Difference{MutableSpec: true}},
		{"when a container is restarted", "resourceName: memory", "resourceName: cpu", Difference{Immutable: []string{"spec.containers[0].resizePolicy[0].resourceName"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was, is := load(t, podYAML(strings.ReplaceAll(before, ", restartPolicy: RestartContainer", ", restartPolicy: NotRequired"))).Pod,
				load(t, podYAML(strings.ReplaceAll(after(t, tt.old, tt.new), ", restartPolicy: RestartContainer", ", restartPolicy: NotRequired"))).Pod
			got, err := Compare(was, is)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
			if got.Empty() != (tt.name == "nothing") {
				t.Errorf("None says %v", got.Empty())
			}
		})
	}
}

func TestCompareRecordOnly(t *testing.T) {
	of := func(meta string) *corev1.Pod {
		return load(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p"+meta+"}\nspec: "+one("")+"\n").Pod
	}
	for meta, want := range map[string]Difference{
		", labels: {a: b}":                                  {RecordOnly: true},
		", annotations: {example.com/a: b}":                 {RecordOnly: true},
		", annotations: {podrun.dev/pod-limits: effective}": {Immutable: []string{"metadata.annotations[podrun.dev/pod-limits]"}},
	} {
		got, err := Compare(of(""), of(meta))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: %s", meta, diff)
		}
	}
	was, is := of(""), of("")
	podutil.FillSystemFields(was, "uid", was.CreationTimestamp.Time)
	was.Generation = 7
	if got, err := Compare(was, is); err != nil || !got.Empty() {
		t.Errorf("what makes a pod itself counts: %+v, %v", got, err)
	}
	for given, want := range map[string]Difference{"7": {}, "3": {}, "8": {RecordOnly: true}} {
		if got, err := Compare(was, of(", generation: "+given)); err != nil || !cmp.Equal(&want, got) {
			t.Errorf("generation %s instead of 7: %+v, %v", given, got, err)
		}
	}
}

// TestNextGeneration: a given generation counts if it is a later one.
func TestNextGeneration(t *testing.T) {
	for _, tt := range []struct {
		given, want int64
		d           Difference
	}{
		{0, 7, Difference{RecordOnly: true}},
		{0, 8, Difference{Resources: true}},
		{0, 8, Difference{MutableSpec: true}},
		{7, 8, Difference{Images: []string{"a"}}},
		{8, 8, Difference{Images: []string{"a"}}},
		{20, 20, Difference{RecordOnly: true}},
	} {
		old, next := &corev1.Pod{}, &corev1.Pod{}
		old.Generation, next.Generation = 7, tt.given
		if got := build.NextGeneration(old, next, &tt.d); got != tt.want {
			t.Errorf("%d after 7, %+v: %d, want %d", tt.given, tt.d, got, tt.want)
		}
	}
}

// TestValidateLifetime: changes of a pod's lifetime, in the words of the API server.
func TestValidateLifetime(t *testing.T) {
	const toleration = "tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]"
	for _, tt := range []struct{ old, new, want string }{
		{"", "activeDeadlineSeconds: 60", ""},
		{"activeDeadlineSeconds: 60", "activeDeadlineSeconds: 59", ""},
		{"activeDeadlineSeconds: 60", "activeDeadlineSeconds: 61", "spec.activeDeadlineSeconds: Invalid value: 61: must be less than or equal to previous value"},
		{"activeDeadlineSeconds: 60", "", "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"},
		{"", toleration, ""},
		{toleration, strings.Replace(toleration, "5}", "6}, {key: b, operator: Exists}", 1), ""},
		{toleration, strings.Replace(toleration, "key: a", "key: b", 1), "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"},
		{toleration, "", "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"},
	} {
		of := func(more string) *Object { return load(t, podYAML("{containers: [{name: a, image: b}], "+more+"}")) }
		err := ValidatePodUpdate(of(tt.new), of(tt.old).Pod)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("from %q to %q: %v, want %q", tt.old, tt.new, err, tt.want)
		}
	}
}

// TestValidateResize: the words are those of the API server.
func TestValidateResize(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"more", "limits: {memory: 32Mi}", "limits: {memory: 64Mi, cpu: 1}", ""},
		{"another class", "{name: log, image: b}", "{name: log, image: b, resources: {limits: {memory: 5Mi}}}", ""},
		{"a limit less", "requests: {cpu: 100m, memory: 16Mi}, limits: {memory: 32Mi}", "requests: {cpu: 100m, memory: 16Mi}",
			"spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"},
		{"a request less", "requests: {cpu: 10m}", "requests: {}", "spec.initContainers[1].resources.requests: Forbidden: resource requests cannot be removed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was, is := load(t, podYAML(before)).Pod, load(t, podYAML(after(t, tt.old, tt.new))).Pod
			var got []string
			for _, err := range validation.ValidateResize(was, is) {
				got = append(got, err.Error())
			}
			if strings.Join(got, "\n") != tt.want {
				t.Errorf("got %q", got)
			}
		})
	}
	guaranteed := load(t, podYAML(one("resources: {limits: {cpu: 1, memory: 1Mi}}"))).Pod
	burstable := load(t, podYAML(one("resources: {limits: {cpu: 1, memory: 1Mi}, requests: {cpu: 500m}}")))
	err := ValidatePodUpdate(burstable, guaranteed)
	if err == nil || !strings.Contains(err.Error(), `spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing`) {
		t.Errorf("from Guaranteed to Burstable: %v", err)
	}
	whole := load(t, podYAML(`{resources: {limits: {cpu: 1}}, containers: [{name: a, image: b}]}`)).Pod
	for spec, want := range map[string]string{
		`{containers: [{name: a, image: b}]}`:                                     `spec.resources: Forbidden: pod-level resources cannot be removed`,
		`{resources: {limits: {memory: 1Gi}}, containers: [{name: a, image: b}]}`: `spec.resources.limits: Forbidden: pod-level resource limits cannot be removed`,
	} {
		if err := ValidatePodUpdate(load(t, podYAML(spec)), whole); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestResizePolicyIsChecked(t *testing.T) {
	for fields, want := range map[string]string{
		"resizePolicy: [{resourceName: disk, restartPolicy: NotRequired}]":                                                 `spec.containers[0].resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"`,
		"resizePolicy: [{resourceName: cpu, restartPolicy: Maybe}]":                                                        `spec.containers[0].resizePolicy: Unsupported value: "Maybe": supported values: "NotRequired", "RestartContainer"`,
		"resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}, {resourceName: cpu, restartPolicy: NotRequired}]": `spec.containers[0].resizePolicy[1]: Duplicate value: "cpu"`,
	} {
		if got := mistakes(podYAML(one(fields))); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q", fields, got)
		}
	}
	plain := `{initContainers: [{name: i, image: b, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}], containers: [{name: c, image: b}]}`
	if got := mistakes(podYAML(plain)); len(got) != 1 || !strings.Contains(got[0], "must not be set to 'RestartContainer' for non-sidecar initContainers") {
		t.Errorf("%q", got)
	}
	never := `{restartPolicy: Never, containers: [{name: c, image: b, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]}`
	if got := mistakes(podYAML(never)); len(got) != 1 || !strings.Contains(got[0], "must be 'NotRequired' when pod `restartPolicy` is 'Never'") {
		t.Errorf("%q", got)
	}
}

func TestUpdate(t *testing.T) {
	images := map[string]pod.Image{}
	for _, name := range []string{"prepare", "side", "web", "log"} {
		images[name] = pod.Image{ID: "sha256:1", Layers: []string{"/one"}, Cmd: []string{"from the image"}}
	}
	was := load(t, podYAML(before))
	plan, err := Build(was, images, BuildOptions{UID: "u", RequireLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	update := func(old, new string) *pod.Plan {
		t.Helper()
		o := load(t, podYAML(after(t, old, new)))
		d, err := Compare(was.Pod, o.Pod)
		if err != nil || len(d.Immutable) > 0 {
			t.Fatal(d, err)
		}
		next, err := Update(plan, was.Pod, o, d, map[string]pod.Image{"log": {ID: "sha256:2", Layers: []string{"/two"}, Cmd: []string{"from the new image"}}}, BuildOptions{UID: "another", NodeName: "n"})
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	want := func(got *pod.Plan, change func(p *pod.Plan)) {
		t.Helper()
		p := *plan
		p.InitContainers, p.Containers = append([]pod.Container{}, p.InitContainers...), append([]pod.Container{}, p.Containers...)
		change(&p)
		if diff := cmp.Diff(&p, got); diff != "" {
			t.Error(diff)
		}
	}
	want(update("cpu: 100m", "cpu: 200m"), func(p *pod.Plan) {
		p.Resources.CPURequest += 100
		p.Containers[0].Resources.CPURequest += 100
		// The container without requests gets the pod's.
		p.Containers[1].Resources.CPURequest += 100
		p.InitContainers[0].Resources.CPURequest += 100
	})
	// Its resize policy requires a restart, and the container without a limit follows.
	want(update("limits: {memory: 32Mi}", "limits: {memory: 40Mi}"), func(p *pod.Plan) {
		p.Resources.MemoryLimit += 8 << 20
		p.Containers[0].Resources.MemoryLimit += 8 << 20
		p.Containers[0].Revision = 1
		p.Containers[1].Resources.MemoryLimit += 8 << 20
		p.InitContainers[1].Resources.MemoryLimit += 8 << 20
	})
	want(update("{name: log, image: b}", "{name: log, image: c}"), func(p *pod.Plan) {
		c := &p.Containers[1]
		c.Image, c.ImageID, c.Layers, c.Args, c.Revision = "c", "sha256:2", []string{"/two"}, []string{"from the new image"}, 1
	})
}
