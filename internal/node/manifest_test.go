package node

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestManifest checks that a manifest needs no API server, and that the API server's pod stays as it is.
func TestManifest(t *testing.T) {
	p := testPod(func(p *corev1.Pod) {
		p.Annotations = map[string]string{"a": "b"}
		p.ResourceVersion, p.OwnerReferences, p.Labels = "5", []metav1.OwnerReference{{Name: "web"}}, map[string]string{"a": "b"}
		p.Spec.ServiceAccountName = "robot"
		p.Status.Phase = corev1.PodRunning
		p.Spec.Volumes = []corev1.Volume{{Name: "api", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		}}}}}
	})
	before := p.DeepCopy()
	m := manifestOf(p)
	if diff := cmp.Diff(before, p); diff != "" {
		t.Errorf("the API server's pod was changed:\n%s", diff)
	}
	want := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "podrun-token-1-0"}, Items: []corev1.KeyToPath{{Key: "token", Path: "token"}}}
	if diff := cmp.Diff(want, m.Spec.Volumes[0].Projected.Sources[1].Secret); diff != "" {
		t.Errorf("the token:\n%s", diff)
	}
	if m.ResourceVersion != "" || m.OwnerReferences != nil || m.Status.Phase != "" || m.Labels["a"] != "b" || *m.Spec.AutomountServiceAccountToken || m.Spec.ServiceAccountName != "" {
		t.Errorf("the manifest is %+v", m)
	}
	if want := map[string]string{"a": "b", "podrun.dev/pod-limits": "kubelet"}; !maps.Equal(m.Annotations, want) {
		t.Errorf("the annotations are %v, not %v", m.Annotations, want)
	}
	p.Annotations["podrun.dev/pod-limits"] = "effective"
	if m := manifestOf(p); !maps.Equal(m.Annotations, p.Annotations) {
		t.Errorf("the annotations are %v, not %v", m.Annotations, p.Annotations)
	}
}

// TestLogsOfNode: a pod that mounts the host's logs of containers gets the node's, read-only; nothing else changes.
func TestLogsOfNode(t *testing.T) {
	hostPath := func(name, path string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
	}
	mounts := []corev1.VolumeMount{{Name: "all"}, {Name: "pods"}, {Name: "containers"}, {Name: "journal"}, {Name: "tmp"}}
	p := testPod(func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{hostPath("all", "/var/log/"), hostPath("pods", "/var/log/pods"), hostPath("containers", "/var/log/containers"), hostPath("journal", "/var/log/journal"), {Name: "tmp"}}
		p.Spec.InitContainers = []corev1.Container{{VolumeMounts: mounts}}
		p.Spec.Containers = []corev1.Container{{VolumeMounts: mounts}}
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{VolumeMounts: mounts}}}
	})
	before := p.DeepCopy()
	m := (&Agent{LogDir: "/data/log", Node: &Registration{}}).manifestOf(p)
	if diff := cmp.Diff(before, p); diff != "" {
		t.Errorf("the API server's pod was changed:\n%s", diff)
	}
	for i, want := range []string{"/data/log", "/data/log/pods", "/data/log/containers", "/var/log/journal"} {
		if got := m.Spec.Volumes[i].HostPath.Path; got != want {
			t.Errorf("volume %s is %s, not %s", m.Spec.Volumes[i].Name, got, want)
		}
	}
	for _, list := range [][]corev1.VolumeMount{m.Spec.InitContainers[0].VolumeMounts, m.Spec.Containers[0].VolumeMounts, m.Spec.EphemeralContainers[0].VolumeMounts} {
		for i, readOnly := range []bool{true, true, true, false, false} {
			if list[i].ReadOnly != readOnly {
				t.Errorf("%s is read-only: %t", list[i].Name, list[i].ReadOnly)
			}
		}
	}
	if m := (&Agent{Node: &Registration{}}).manifestOf(p); m.Spec.Volumes[0].HostPath.Path != "/var/log/" {
		t.Errorf("without logs of the node it is %s", m.Spec.Volumes[0].HostPath.Path)
	}
}

// TestReferences checks every place in which a pod may refer to a ConfigMap or a Secret.
func TestReferences(t *testing.T) {
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	env := func(n string) corev1.Container {
		return corev1.Container{
			EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("c" + n)}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("s" + n)}}},
			Env: []corev1.EnvVar{
				{Name: "A", Value: "plain"},
				{Name: "B", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local("ck" + n)}}},
				{Name: "C", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("sk" + n)}}},
				{Name: "D", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			},
		}
	}
	p := testPod(func(p *corev1.Pod) {
		s := &p.Spec
		s.InitContainers, s.Containers = []corev1.Container{env("1")}, []corev1.Container{env("2")}
		s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(env("3"))}}
		s.ImagePullSecrets = []corev1.LocalObjectReference{local("pull"), {}}
		s.Volumes = []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("cv")}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "sv"}}},
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("cp")}}, {Secret: &corev1.SecretProjection{LocalObjectReference: local("sp")}},
			}}}},
		}
	})
	var got []string
	for r := range maps.Keys(referencesOf(p)) {
		if r.Namespace != "default" || r.Kind == kindConfigMap != strings.HasPrefix(r.Name, "c") {
			t.Errorf("%+v", r)
		}
		got = append(got, r.Name)
	}
	slices.Sort(got)
	if want := "c1 c2 c3 ck1 ck2 ck3 cp cv pull s1 s2 s3 sk1 sk2 sk3 sp sv"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestMergeStatus checks that the status that the API server gets keeps what others have set.
func TestMergeStatus(t *testing.T) {
	gate := corev1.PodCondition{Type: "example.com/open", Status: corev1.ConditionTrue}
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}
	p := testPod(func(p *corev1.Pod) {
		p.Generation = 3
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, NominatedNodeName: "x", Conditions: []corev1.PodCondition{scheduled, gate, {Type: corev1.PodReady, Status: corev1.ConditionFalse}}}
	})
	local := &corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.88.0.8", PodIPs: []corev1.PodIP{{IP: "10.88.0.8"}}, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionFalse}, {Type: gate.Type, Status: corev1.ConditionFalse},
	}}
	scheduled.ObservedGeneration = 3
	want := &corev1.PodStatus{
		ObservedGeneration: 3, Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, NominatedNodeName: "x",
		HostIP: "192.0.2.1", HostIPs: []corev1.HostIP{{IP: "192.0.2.1"}}, PodIP: "10.88.0.8", PodIPs: []corev1.PodIP{{IP: "10.88.0.8"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, ObservedGeneration: 3}, scheduled, gate},
	}
	addresses := []string{"192.0.2.1"}
	if diff := cmp.Diff(want, mergeStatus(p, local, addresses)); diff != "" {
		t.Error(diff)
	}
	p.Spec.HostNetwork = true
	if got := mergeStatus(p, local, addresses); got.PodIP != "192.0.2.1" || len(got.PodIPs) != 1 {
		t.Errorf("a pod in the host's network has %s, %v", got.PodIP, got.PodIPs)
	}
	p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
	if got := mergeStatus(p, local, addresses); got.Phase != corev1.PodFailed || got.Reason != "Evicted" {
		t.Errorf("a final status became %s, %s", got.Phase, got.Reason)
	}
}

// TestEqualStatus checks that times are compared as the API server stores them.
func TestEqualStatus(t *testing.T) {
	moment := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	st := func(moment time.Time) *corev1.PodStatus {
		return &corev1.PodStatus{StartTime: new(metav1.NewTime(moment))}
	}
	if !equalStatus(st(moment), st(moment.Truncate(time.Second))) {
		t.Error("nanoseconds make a difference")
	}
	if equalStatus(st(moment), st(moment.Add(time.Second))) {
		t.Error("a second makes no difference")
	}
}

// TestConditions compares with the kubelet's reasons.
func TestConditions(t *testing.T) {
	for _, tc := range []struct {
		facts    *Facts
		pressure []corev1.NodeConditionType
		want     string
	}{
		{
			&Facts{Reason: "cgroups are missing"}, []corev1.NodeConditionType{corev1.NodeDiskPressure, corev1.NodeMemoryPressure, corev1.NodePIDPressure},
			"MemoryPressure=True/KubeletHasInsufficientMemory DiskPressure=True/KubeletHasDiskPressure PIDPressure=True/KubeletHasInsufficientPID NetworkUnavailable=False/PodrunRouter Ready=False/KubeletNotReady",
		},
		{
			&Facts{}, nil,
			"MemoryPressure=False/KubeletHasSufficientMemory DiskPressure=False/KubeletHasNoDiskPressure PIDPressure=False/KubeletHasSufficientPID NetworkUnavailable=False/PodrunRouter Ready=True/KubeletReady",
		},
	} {
		var got []string
		for _, c := range conditions(tc.facts, tc.pressure, (*Network)(nil).condition()) {
			got = append(got, string(c.Type)+"="+string(c.Status)+"/"+c.Reason)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%v, want %s", got, tc.want)
		}
	}
}

// TestRecords checks that records survive, and that a damaged one is named.
func TestRecords(t *testing.T) {
	r := Records(t.TempDir() + "/pods")
	if pods, err := r.Load(); err != nil || len(pods) != 0 {
		t.Errorf("without a directory: %v, %v", pods, err)
	}
	p := testPod(func(p *corev1.Pod) { p.UID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8" })
	if err := r.Put(p); err != nil {
		t.Fatal(err)
	}
	pods, err := r.Load()
	if err != nil || len(pods) != 1 || pods[0].UID != p.UID {
		t.Errorf("%v, %v", pods, err)
	}
	if err := r.Remove(p.UID); err != nil {
		t.Error(err)
	}
	if err := r.Remove(p.UID); err != nil {
		t.Errorf("removed twice: %v", err)
	}
	for _, bad := range []func(*corev1.Pod){
		func(p *corev1.Pod) { p.UID = "../escape" }, func(p *corev1.Pod) { p.UID = "" }, func(p *corev1.Pod) { p.Name = "a/b" }, func(p *corev1.Pod) { p.Namespace = ".." },
	} {
		if checkIdentity(testPod(bad)) == nil {
			t.Errorf("%+v is accepted", testPod(bad).ObjectMeta)
		}
	}
}

// TestRemoveForeign: a container gets the devices of the node; other extended resources are only counted.
func TestRemoveForeign(t *testing.T) {
	list := func() corev1.ResourceList {
		one := resource.MustParse("1")
		return corev1.ResourceList{corev1.ResourceCPU: one, "hugepages-2Mi": one, "nvidia.com/gpu": one, "example.com/license": one}
	}
	container := corev1.Container{Resources: corev1.ResourceRequirements{Limits: list(), Requests: list()}}
	m := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{*container.DeepCopy()}, Containers: []corev1.Container{container}}}
	removeForeign(m, []string{"nvidia.com/gpu"})
	for _, r := range []corev1.ResourceRequirements{m.Spec.InitContainers[0].Resources, m.Spec.Containers[0].Resources} {
		for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
			if _, has := list["example.com/license"]; has || len(list) != 3 {
				t.Errorf("the container has %v", list)
			}
		}
	}
}
