package eviction

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func parse(t *testing.T, words ...string) []Threshold {
	t.Helper()
	all, err := ParseThresholds(words)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestParseThresholds: the kubelet's syntax, and what is refused by name.
func TestParseThresholds(t *testing.T) {
	for words, want := range map[string]string{
		strings.Join(Defaults(), " "):              "memory.available 100Mi 0, nodefs.available 0 10, imagefs.available 0 15, nodefs.inodesFree 0 5, imagefs.inodesFree 0 5",
		"pid.available<1k imagefs.inodesFree<2.5%": "pid.available 1k 0, imagefs.inodesFree 0 2.5",
		"": "",
		"nodefs.available<0% imagefs.available<100%": "",
		"memory.available<100Mi memory.available<5%": "memory.available is given twice",
		"containerfs.available<5%":                   `"containerfs.available<5%": use SIGNAL<QUANTITY`,
		"allocatableMemory.available<5%":             `"allocatableMemory.available<5%": use SIGNAL<QUANTITY`,
		"memory.available>100Mi":                     `"memory.available>100Mi": use SIGNAL<QUANTITY`,
		"memory.available":                           `"memory.available": use SIGNAL<QUANTITY`,
		"memory.available<":                          `"memory.available<": "" is no positive quantity`,
		"memory.available<0":                         `"memory.available<0": "0" is no positive quantity`,
		"memory.available<-1":                        `"memory.available<-1": "-1" is no positive quantity`,
		"nodefs.available<101%":                      `"nodefs.available<101%": "101%" is no percentage`,
		"nodefs.available<-1%":                       `"nodefs.available<-1%": "-1%" is no percentage`,
		"nodefs.available<NaN%":                      `"nodefs.available<NaN%": "NaN%" is no percentage`,
	} {
		all, err := ParseThresholds(strings.Fields(words))
		var texts []string
		for _, th := range all {
			texts = append(texts, fmt.Sprint(th.Signal, " ", &th.Quantity, " ", th.Percent))
		}
		got := strings.Join(texts, ", ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || err != nil && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
}

// TestParseReserved: only what a node has can be reserved.
func TestParseReserved(t *testing.T) {
	list, err := ParseReserved([]string{"cpu=200m", "memory=1Gi", "ephemeral-storage=0"})
	if cpu, memory := list[corev1.ResourceCPU], list[corev1.ResourceMemory]; err != nil || len(list) != 3 || cpu.MilliValue() != 200 || memory.Value() != 1<<30 {
		t.Errorf("%v, %v", list, err)
	}
	for words, want := range map[string]string{
		"pid=100":         `"pid=100": podrun does not limit`,
		"example.com/x=1": `"example.com/x=1": only cpu, memory and ephemeral-storage`,
		"cpu":             `"cpu": use cpu=QUANTITY`,
		"cpu=-1":          `"cpu=-1": use cpu=QUANTITY`,
		"cpu=1 cpu=2":     "cpu is given twice",
	} {
		if _, err := ParseReserved(strings.Fields(words)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", words, err, want)
		}
	}
}

// TestAllocatable: reservations of both kinds and the thresholds of memory and nodefs are subtracted.
func TestAllocatable(t *testing.T) {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("1000Mi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1000Mi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	reserved := []corev1.ResourceList{{corev1.ResourceCPU: resource.MustParse("1")}, {corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("200Mi")}}
	got, exceeded := Allocatable(capacity, reserved, parse(t, "memory.available<10%", "nodefs.available<50Mi", "imagefs.available<15%", "pid.available<10"))
	for name, want := range map[corev1.ResourceName]string{"cpu": "2500m", "memory": "700Mi", "ephemeral-storage": "950Mi", "pods": "110"} {
		if q := got[name]; q.Cmp(resource.MustParse(want)) != 0 || exceeded != "" {
			t.Errorf("%s: %v, want %s; exceeded %q", name, &q, want, exceeded)
		}
	}
	got, exceeded = Allocatable(capacity, reserved, parse(t, "memory.available<801Mi"))
	if q := got[corev1.ResourceMemory]; !q.IsZero() || exceeded != corev1.ResourceMemory {
		t.Errorf("too much reserved: %v, exceeded %q", &q, exceeded)
	}
}

// TestMet: a threshold is met below its quantity, not at it. A signal that is not known meets none. Memory comes first.
func TestMet(t *testing.T) {
	thresholds := parse(t, "nodefs.available<10%", "pid.available<10", "memory.available<100Mi", "imagefs.available<15%")
	for name, tc := range map[string]struct {
		observed Observations
		want     string
	}{
		"at the thresholds":    {Observations{MemoryAvailable: {100 << 20, 1 << 30}, NodeFSAvailable: {10, 100}, PIDAvailable: {10, 100}, ImageFSAvailable: {15, 100}}, ""},
		"below the thresholds": {Observations{MemoryAvailable: {100<<20 - 1, 1 << 30}, NodeFSAvailable: {9, 100}, PIDAvailable: {9, 100}, ImageFSAvailable: {14, 100}}, "memory.available nodefs.available pid.available imagefs.available"},
		"nothing is known":     {nil, ""},
		"one is known":         {Observations{ImageFSAvailable: {0, 100}}, "imagefs.available"},
	} {
		var got []string
		for _, th := range Met(thresholds, tc.observed) {
			got = append(got, string(th.Signal))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
}

// TestState: a condition is True at once, and stays for the transition period after its last threshold was met.
func TestState(t *testing.T) {
	memory, disk := parse(t, "memory.available<1"), parse(t, "nodefs.inodesFree<1", "imagefs.available<1")
	start, s := time.Unix(0, 0), State{}
	for _, step := range []struct {
		at   time.Duration
		met  []Threshold
		want []corev1.NodeConditionType
	}{
		{0, nil, nil},
		{1 * time.Minute, memory, []corev1.NodeConditionType{corev1.NodeMemoryPressure}},
		{3 * time.Minute, disk, []corev1.NodeConditionType{corev1.NodeDiskPressure, corev1.NodeMemoryPressure}},
		{6*time.Minute - 1, nil, []corev1.NodeConditionType{corev1.NodeDiskPressure, corev1.NodeMemoryPressure}},
		{6 * time.Minute, nil, []corev1.NodeConditionType{corev1.NodeDiskPressure}},
		{7 * time.Minute, disk, []corev1.NodeConditionType{corev1.NodeDiskPressure}},
		{12*time.Minute - 1, nil, []corev1.NodeConditionType{corev1.NodeDiskPressure}},
		{12 * time.Minute, nil, nil},
	} {
		if s = s.Update(start.Add(step.at), step.met); !slices.Equal(s.Conditions(), step.want) {
			t.Errorf("at %v: %v, want %v", step.at, s.Conditions(), step.want)
		}
	}
}

// pod returns a pod with requests of one container, such as "memory=1Gi".
func pod(name string, priority int32, requests string) *corev1.Pod {
	c := corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
	if key, amount, ok := strings.Cut(requests, "="); ok {
		c.Resources.Requests[corev1.ResourceName(key)] = resource.MustParse(amount)
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Priority: &priority, Containers: []corev1.Container{c}}}
}

// TestRefusal: the kubelet's admission under pressure.
func TestRefusal(t *testing.T) {
	memory, disk, pids := corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure
	burstable, effortless := corev1.PodQOSBurstable, corev1.PodQOSBestEffort
	tolerant := pod("tolerant", 0, "")
	tolerant.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists}, {Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists}}
	mirror := pod("mirror", 0, "")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	for name, tc := range map[string]struct {
		pod        *corev1.Pod
		qos        corev1.PodQOSClass
		conditions []corev1.NodeConditionType
		want       string
	}{
		"no pressure":                   {pod("a", 0, ""), effortless, nil, ""},
		"best effort, memory":           {pod("a", 0, ""), effortless, []corev1.NodeConditionType{memory}, "The node had condition: [MemoryPressure]. "},
		"burstable, memory":             {pod("a", 0, ""), burstable, []corev1.NodeConditionType{memory}, ""},
		"tolerant, memory":              {tolerant, effortless, []corev1.NodeConditionType{memory}, ""},
		"burstable, disk":               {pod("a", 0, ""), burstable, []corev1.NodeConditionType{disk}, "The node had condition: [DiskPressure]. "},
		"tolerant, disk":                {tolerant, effortless, []corev1.NodeConditionType{disk}, "The node had condition: [DiskPressure]. "},
		"burstable, memory and disk":    {pod("a", 0, ""), burstable, []corev1.NodeConditionType{disk, memory}, "The node had condition: [DiskPressure MemoryPressure]. "},
		"burstable, processes":          {pod("a", 0, ""), burstable, []corev1.NodeConditionType{pids}, "The node had condition: [PIDPressure]. "},
		"system-cluster-critical":       {pod("a", 2_000_000_000, ""), effortless, []corev1.NodeConditionType{disk, memory}, ""},
		"the highest priority of users": {pod("a", 1_000_000_000, ""), effortless, []corev1.NodeConditionType{disk}, "The node had condition: [DiskPressure]. "},
		"a mirror of a static pod":      {mirror, effortless, []corev1.NodeConditionType{disk}, ""},
	} {
		if got := Refusal(tc.pod, tc.qos, tc.conditions); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestRank: the kubelet's documented order
// (https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/#pod-selection-for-kubelet-eviction).
func TestRank(t *testing.T) {
	used := func(n int64) *Usage { return &Usage{Total: n} }
	for name, tc := range map[string]struct {
		resource corev1.ResourceName
		pods     []Candidate
		want     string
	}{
		"excess before priority": {corev1.ResourceMemory, []Candidate{
			{pod("within-low", 0, "memory=100"), used(100)}, {pod("over-high", 1000, "memory=100"), used(101)},
		}, "over-high within-low"},
		"priority before the size of the excess": {corev1.ResourceMemory, []Candidate{
			{pod("high", 10, ""), used(1000)}, {pod("low", -10, ""), used(1)},
		}, "low high"},
		"the larger excess, not the larger usage": {corev1.ResourceMemory, []Candidate{
			{pod("large", 0, "memory=900"), used(1000)}, {pod("small", 0, ""), used(200)}, {pod("tiny", 0, "memory=200"), used(10)},
		}, "small large tiny"},
		"unknown usage is first": {corev1.ResourceMemory, []Candidate{
			{pod("over", 0, ""), used(1000)}, {pod("unknown-high", 10, ""), nil}, {pod("unknown-low", 0, ""), nil},
		}, "unknown-low unknown-high over"},
		"critical pods stay": {corev1.ResourceMemory, []Candidate{
			{pod("node-critical", 2_000_001_000, ""), used(1000)}, {pod("user", 1_000_000_000, ""), used(1)},
		}, "user"},
		"disk, by its requests": {corev1.ResourceEphemeralStorage, []Candidate{
			{pod("within", 0, "ephemeral-storage=2k"), used(1500)}, {pod("over", 0, "memory=2k"), used(100)},
		}, "over within"},
		"inodes, which have no requests": {Inodes, []Candidate{
			{pod("few", 0, ""), used(1)}, {pod("many", 0, "ephemeral-storage=1M"), used(100)}, {pod("low", -1, ""), used(1)},
		}, "low many few"},
		"processes, by priority first": {PIDs, []Candidate{
			{pod("high", 10, ""), nil}, {pod("many", 0, ""), used(100)}, {pod("few", 0, ""), used(1)}, {pod("unknown", 0, ""), nil},
		}, "unknown many few high"},
	} {
		slices.Reverse(tc.pods)
		for range 2 { // the result does not depend on the order before
			var got []string
			for _, c := range Rank(tc.resource, tc.pods) {
				got = append(got, c.Pod.Name)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%s: %v, want %s", name, got, tc.want)
			}
			slices.Reverse(tc.pods)
		}
	}
}

// TestMessage compares with the kubelet's words.
func TestMessage(t *testing.T) {
	whole := pod("whole", 0, "")
	whole.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
	for name, tc := range map[string]struct {
		met      string
		observed Observations
		c        Candidate
		want     string
	}{
		"a container above its request": {
			"memory.available<100Mi", Observations{MemoryAvailable: {50 << 20, 1 << 30}},
			Candidate{pod("a", 0, "memory=10Mi"), &Usage{30 << 20, map[string]int64{"main": 30 << 20}}},
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container main was using 30Mi, request is 10Mi, has larger consumption of memory. ",
		},
		"a container within its request": {
			"memory.available<100Mi", Observations{MemoryAvailable: {50 << 20, 1 << 30}},
			Candidate{pod("a", 0, "memory=30Mi"), &Usage{30 << 20, map[string]int64{"main": 30 << 20}}},
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ",
		},
		"a request of the pod": {
			"memory.available<100Mi", Observations{MemoryAvailable: {50 << 20, 1 << 30}}, Candidate{whole, &Usage{Total: 2 << 30}},
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Pod whole was using 2Gi, request is 1Gi, has larger consumption of memory. ",
		},
		"a percentage of the disk": {
			"imagefs.available<15%", Observations{ImageFSAvailable: {1 << 30, 10 << 30}},
			Candidate{pod("a", 0, ""), &Usage{4 << 10, map[string]int64{"main": 4 << 10}}},
			"The node was low on resource: ephemeral-storage. Threshold quantity: 1536Mi, available: 1Gi. Container main was using 4Ki, request is 0, has larger consumption of ephemeral-storage. ",
		},
		"processes of unknown number": {
			"pid.available<100", Observations{PIDAvailable: {50, 4096}}, Candidate{Pod: pod("a", 0, "")},
			"The node was low on resource: pids. Threshold quantity: 100, available: 50. ",
		},
	} {
		if got := Message(parse(t, tc.met), tc.observed, tc.c); got != tc.want || !IsMessage(got) {
			t.Errorf("%s: %s\nwant %s", name, got, tc.want)
		}
	}
	if IsMessage("Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ") {
		t.Error("a limit of the pod is taken for pressure of the node")
	}
}
