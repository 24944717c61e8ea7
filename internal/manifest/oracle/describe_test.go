package oracle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubectl "k8s.io/kubectl/pkg/describe"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/describe"
	"github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/pod"
)

// TestDescribe: podrun describe prints a pod as kubectl describe does, except for what a container waits
// for, and for this machine's own fields.
func TestDescribe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, st, events := drawDescribed(draw{t, false})
		rendered := manifest.Render(p, st)
		got := describe.Pod(rendered, events, nil, time.Now())
		if diff := cmp.Diff(kubectlDescribes(t, rendered, events), got); diff != "" {
			t.Fatalf("-kubectl +podrun:\n%s", diff)
		}
	})
}

func drawDescribed(d draw) (*corev1.Pod, *pod.Status, []corev1.Event) {
	now := time.Now().Add(-time.Minute)
	p := d.pod()
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "plain", Image: "i"})
	for i := range p.Spec.Containers { // kubectl does not support values from files
		p.Spec.Containers[i].Env = slices.DeleteFunc(p.Spec.Containers[i].Env, fromFile)
	}
	for i := range p.Spec.InitContainers {
		p.Spec.InitContainers[i].Env = slices.DeleteFunc(p.Spec.InitContainers[i].Env, fromFile)
	}
	defaulting.SetDefaults(p)
	p.UID, p.Annotations = "u-1", map[string]string{"a": "b", "long": strings.Repeat("x", 150), "lines": "1\n2\n"}
	p.Labels = map[string]string{"app": "web", "tier": "front"}
	p.Spec.Volumes = d.volumes()
	p.Spec.NodeSelector = map[string]string{"kubernetes.io/arch": "arm64"}
	p.Spec.Tolerations = []corev1.Toleration{{Key: "z", Operator: corev1.TolerationOpExists}, {Key: "k", Value: "v", Effect: "NoExecute", TolerationSeconds: new(int64(3))}, {Operator: corev1.TolerationOpExists}}
	if d.maybe() {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "x/y"}, {ConditionType: "Ready"}}
	}
	st := &pod.Status{
		Phase: pod.Phase(d.one("Pending", "Running", "Failed")), Reason: d.often("", "Evicted"), Message: d.often("", "too much"),
		StartTime: now, Conditions: []pod.Condition{{Type: "Ready", Status: d.one("True", "False")}},
	}
	if d.maybe() {
		st.PodIPs, st.HostIPs = []string{"10.88.0.2", "fd88::2"}, []string{"192.0.2.1"}
	}
	for _, c := range p.Spec.InitContainers {
		st.InitContainers = append(st.InitContainers, d.containerStatus(c.Name, now))
	}
	for _, c := range p.Spec.Containers {
		st.Containers = append(st.Containers, d.containerStatus(c.Name, now))
	}
	var events []pod.Event
	for i := range rapid.IntRange(0, 2).Draw(d.T, "events") {
		events = append(events, pod.Event{Type: "Normal", Reason: "Started", Message: "Container started", Container: d.often("", p.Spec.Containers[0].Name),
			Count: i + 1, First: now.Add(-time.Duration(i+1) * time.Minute), Last: now.Add(time.Duration(i) * time.Second)})
	}
	return p, st, status.Events(p, events)
}

func fromFile(v corev1.EnvVar) bool { return v.ValueFrom != nil && v.ValueFrom.FileKeyRef != nil }

// volumes returns one of each source that podrun has.
func (d draw) volumes() []corev1.Volume {
	no, limit := new(true), resource.MustParse("2Gi")
	sources := []corev1.VolumeSource{
		{HostPath: &corev1.HostPathVolumeSource{Path: "/srv", Type: new(corev1.HostPathDirectory)}},
		{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}},
		{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory", SizeLimit: &limit}},
		{Secret: &corev1.SecretVolumeSource{SecretName: "s", Optional: no}},
		{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}},
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c", ReadOnly: true}},
		{Image: &corev1.ImageVolumeSource{Reference: "r", PullPolicy: "Always"}},
		{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "l", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			{Path: "m", ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}}}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Optional: no}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{}}}}},
	}
	var out []corev1.Volume
	for i, s := range sources {
		if d.maybe() {
			out = append(out, corev1.Volume{Name: string(rune('a' + i)), VolumeSource: s})
		}
	}
	return out
}

func kubectlDescribes(t *rapid.T, p *corev1.Pod, events []corev1.Event) string {
	objects := []runtime.Object{p}
	for i := range events {
		events[i].Namespace = p.Namespace
		objects = append(objects, &events[i])
	}
	client := fake.NewClientset(objects...)
	text, err := (&kubectl.PodDescriber{Interface: client}).Describe(p.Namespace, p.Name, kubectl.DescriberSettings{ShowEvents: true})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
