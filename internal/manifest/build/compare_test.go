package build_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/manifest/manifesttest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           build.Difference
	}{
		{"nothing", "cpu: 100m", "cpu: 0.1", build.Difference{}},
		{"a request", "cpu: 100m", "cpu: 200m", build.Difference{Resources: true}},
		{"a limit that was not there", "limits: {memory: 32Mi}", "limits: {memory: 32Mi, cpu: 1}", build.Difference{Resources: true}},
		{"resources where there were none", "{name: log, image: b}", "{name: log, image: b, resources: {limits: {cpu: 1}}}", build.Difference{Resources: true}},
		{"resources of a sidecar", "cpu: 10m", "cpu: 11m", build.Difference{Resources: true}},
		{"pod-level resources", "  containers: [", "  resources: {limits: {cpu: 2}}, containers: [", build.Difference{Resources: true}},
		{"an image", "{name: log, image: b}", "{name: log, image: c}", build.Difference{Images: []string{"log"}, RecordOnly: true}},
		{"an image, and how it is pulled", "{name: log, image: b}", "{name: log, image: 'c:latest'}", build.Difference{Images: []string{"log"}, RecordOnly: true}},
		{"a command", "command: [run]", "command: [go]", build.Difference{Immutable: []string{"spec.containers[0].command"}}},
		{"an argument more", "command: [run]", "command: [run, go]", build.Difference{Immutable: []string{"spec.containers[0].command"}}},
		{"a container more", "{name: log, image: b}", "{name: log, image: b}, {name: new, image: b}", build.Difference{Immutable: []string{"spec.containers[2]"}}},
		{"another policy and another name", "{name: log, image: b}]}", "{name: other, image: b}], restartPolicy: Never}",
			build.Difference{Immutable: []string{"spec.containers[1].name", "spec.restartPolicy"}}},
		{"a volume", "{name: log, image: b}]}", "{name: log, image: b}], volumes: [{name: v}]}", build.Difference{Immutable: []string{"spec.volumes"}}},
		{"a deadline", "{name: log, image: b}]}", "{name: log, image: b}], activeDeadlineSeconds: 60}", build.Difference{MutableSpec: true}},
		{"a toleration more", "{name: log, image: b}]}", "{name: log, image: b}], tolerations: [{key: a, operator: Exists}]}", build.Difference{MutableSpec: true}},
		{"when a container is restarted", "resourceName: memory", "resourceName: cpu", build.Difference{Immutable: []string{"spec.containers[0].resizePolicy[0].resourceName"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was, is := load(t, podYAML(strings.ReplaceAll(manifesttest.Resizable, ", restartPolicy: RestartContainer", ", restartPolicy: NotRequired"))).Pod,
				load(t, podYAML(strings.ReplaceAll(manifesttest.Changed(t, tt.old, tt.new), ", restartPolicy: RestartContainer", ", restartPolicy: NotRequired"))).Pod
			got, err := build.Compare(was, is)
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
	for meta, want := range map[string]build.Difference{
		", labels: {a: b}":                                {RecordOnly: true},
		", annotations: {example.com/a: b}":               {RecordOnly: true},
		", annotations: {podrun.dev/pod-limits: kubelet}": {Resources: true},
		", annotations: {podrun.dev/keep-files: 'true'}":  {Immutable: []string{"metadata.annotations[podrun.dev/keep-files]"}},
	} {
		got, err := build.Compare(of(""), of(meta))
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
	if got, err := build.Compare(was, is); err != nil || !got.Empty() {
		t.Errorf("what makes a pod itself counts: %+v, %v", got, err)
	}
	for given, want := range map[string]build.Difference{"7": {}, "3": {}, "8": {RecordOnly: true}} {
		if got, err := build.Compare(was, of(", generation: "+given)); err != nil || !cmp.Equal(&want, got) {
			t.Errorf("generation %s instead of 7: %+v, %v", given, got, err)
		}
	}
}

// TestNextGeneration: a given generation counts if it is a later one.
func TestNextGeneration(t *testing.T) {
	for _, tt := range []struct {
		given, want int64
		d           build.Difference
	}{
		{0, 7, build.Difference{RecordOnly: true}},
		{0, 8, build.Difference{Resources: true}},
		{0, 8, build.Difference{MutableSpec: true}},
		{7, 8, build.Difference{Images: []string{"a"}}},
		{8, 8, build.Difference{Images: []string{"a"}}},
		{20, 20, build.Difference{RecordOnly: true}},
	} {
		old, next := &corev1.Pod{}, &corev1.Pod{}
		old.Generation, next.Generation = 7, tt.given
		if got := build.NextGeneration(old, next, &tt.d); got != tt.want {
			t.Errorf("%d after 7, %+v: %d, want %d", tt.given, tt.d, got, tt.want)
		}
	}
}

func TestUpdate(t *testing.T) {
	images := map[string]pod.Image{}
	for _, name := range []string{"prepare", "side", "web", "log"} {
		images[name] = pod.Image{ID: "sha256:1", Layers: []string{"/one"}, Cmd: []string{"from the image"}}
	}
	was := load(t, podYAML(manifesttest.Resizable))
	plan, err := build.Plan(was, images, build.Options{UID: "u", RequireLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	update := func(old, new string) *pod.Plan {
		t.Helper()
		o := load(t, podYAML(manifesttest.Changed(t, old, new)))
		d, err := build.Compare(was.Pod, o.Pod)
		if err != nil || len(d.Immutable) > 0 {
			t.Fatal(d, err)
		}
		next, err := build.Update(plan, was.Pod, o, d, map[string]pod.Image{"log": {ID: "sha256:2", Layers: []string{"/two"}, Cmd: []string{"from the new image"}}}, build.Options{UID: "another", NodeName: "n"})
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
