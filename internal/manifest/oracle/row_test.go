package oracle

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/manifest"
	manifestprinters "github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/pod"
)

// TestRow: a line of podrun ps is the line of kubectl get pods.
func TestRow(t *testing.T) {
	table := printers.NewTableGenerator().With(printersinternal.AddHandlers)
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		d := draw{t, false}
		p, st := d.life(now)
		rendered := manifest.Render(p, st)
		if st.Deleting {
			rendered.DeletionTimestamp = new(metav1.NewTime(now))
		}
		rows, err := table.GenerateTable(convert(t, rendered), printers.GenerateOptions{Wide: true})
		if err != nil {
			t.Fatal(err)
		}
		r := manifestprinters.PodRow(p, st, now)
		got := []any{r.Name, r.Ready, r.Status, r.Restarts, r.Age, r.IP, r.Node}
		if diff := cmp.Diff(fmt.Sprint(rows.Rows[0].Cells[:7]), fmt.Sprint(got)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// life returns a Pod and a possible status, likely or not.
func (d draw) life(now time.Time) (*corev1.Pod, *pod.Status) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", CreationTimestamp: metav1.NewTime(now.Add(-200 * time.Minute))}}
	st := &pod.Status{
		Phase:    pod.Phase(d.one("Pending", "Running", "Succeeded", "Failed", "Unknown")),
		Reason:   d.often("", "DeadlineExceeded"),
		Deleting: d.rarely(),
	}
	for _, kind := range []string{"Initialized", "Ready"} {
		if d.maybe() {
			st.Conditions = append(st.Conditions, pod.Condition{Type: kind, Status: d.one("True", "False")})
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(d.T, "inits") {
		c := corev1.Container{Name: fmt.Sprint("i", i)}
		if d.maybe() {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		st.InitContainers = append(st.InitContainers, d.containerStatus(c.Name, now))
	}
	for i := range rapid.IntRange(1, 3).Draw(d.T, "apps") {
		c := corev1.Container{Name: fmt.Sprint("c", i)}
		p.Spec.Containers = append(p.Spec.Containers, c)
		st.Containers = append(st.Containers, d.containerStatus(c.Name, now))
	}
	return p, st
}

func (d draw) containerStatus(name string, now time.Time) pod.ContainerStatus {
	c := pod.ContainerStatus{Name: name, Ready: d.maybe(), Started: d.maybe()}
	if d.maybe() {
		c.RestartCount = int(d.number(1, 2, 17))
		c.LastState = pod.State{Terminated: d.terminated(now)}
	}
	switch d.one("waiting", "running", "terminated", "") {
	case "waiting":
		c.State.Waiting = &pod.Waiting{Reason: d.one("PodInitializing", "ContainerCreating", "CrashLoopBackOff", "")}
	case "running":
		c.State.Running = &pod.RunningAt{StartedAt: now}
	case "terminated":
		c.State.Terminated = d.terminated(now)
	}
	return c
}

func (d draw) terminated(now time.Time) *pod.Terminated {
	return &pod.Terminated{
		ExitCode: int(d.number(0, 0, 1, 137)), Signal: int(d.number(0, 9)), Reason: d.one("Completed", "Error", "OOMKilled", ""),
		FinishedAt: now.Add(-time.Duration(d.number(1, 7, 125)) * time.Minute),
	}
}
