package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecide(t *testing.T) {
	pod := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"}}
		for _, c := range change {
			c(p)
		}
		return p
	}
	deleted := func(grace int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(time.Unix(1, 0))), &grace
		}
	}
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	alive, lost, ended := &Local{UID: "1", Alive: true}, &Local{UID: "1"}, &Local{UID: "1", Ended: true}
	other := &Local{UID: "2", Alive: true}
	for name, tc := range map[string]struct {
		view
		want action
	}{
		"a new pod starts": {view{pod: pod()}, apply},
		"a new pod starts though an attempt has failed": {view{pod: pod(), applied: true}, apply},
		"a running pod stays":                           {view{pod: pod(), local: alive, applied: true}, wait},
		"a changed pod is applied":                      {view{pod: pod(), local: alive}, apply},
		"a lost pod is resumed":                         {view{pod: pod(), local: lost}, apply},
		"an ended pod stays until it is deleted":        {view{pod: pod(), local: ended}, wait},
		"an ended pod that is not here does not start":  {view{pod: pod(failed)}, wait},
		"a rejected pod does not start":                 {view{pod: pod(), rejected: true}, wait},
		"a pod that is being started is waited for":     {view{pod: pod(), applying: true}, wait},
		"another pod of the name is waited for":         {view{pod: pod(), local: other}, waitForEnd},

		"a deleted pod stops":                     {view{pod: pod(deleted(30)), local: alive, applied: true}, stop},
		"a deleted pod is not started any longer": {view{pod: pod(deleted(30)), applying: true}, cancelApply},
		"a stop goes on":                          {view{pod: pod(deleted(30)), local: alive, stopping: new(int64(30))}, wait},
		"a shorter grace period stops again":      {view{pod: pod(deleted(1)), local: alive, stopping: new(int64(30))}, stop},
		"a stopped pod reports its end first":     {view{pod: pod(deleted(30)), local: ended}, wait},
		"a stopped pod is removed":                {view{pod: pod(deleted(30)), local: ended, reported: true}, remove},
		"a removed pod is deleted":                {view{pod: pod(deleted(30))}, finish},
		"a rejected pod is deleted":               {view{pod: pod(deleted(30), failed), rejected: true}, finish},
		"another pod of the name is not stopped":  {view{pod: pod(deleted(30)), local: other}, finish},

		"an orphan stops": {view{pod: pod(), orphaned: true, local: alive}, stop},
		"a stopped orphan is removed, as nobody waits":    {view{pod: pod(), orphaned: true, local: ended}, remove},
		"a removed orphan is forgotten":                   {view{pod: pod(), orphaned: true}, forget},
		"an orphan does not stop another pod of its name": {view{pod: pod(), orphaned: true, local: other}, forget},
	} {
		if got := decide(&tc.view); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
