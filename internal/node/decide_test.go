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
		"a new pod starts": {view{pod: pod()}, actApply},
		"a new pod starts though an attempt has failed": {view{pod: pod(), applied: true}, actApply},
		"a running pod stays":                           {view{pod: pod(), local: alive, applied: true}, actWait},
		"a changed pod is applied":                      {view{pod: pod(), local: alive}, actApply},
		"a lost pod is resumed":                         {view{pod: pod(), local: lost}, actApply},
		"an ended pod stays until it is deleted":        {view{pod: pod(), local: ended}, actWait},
		"an ended pod that is not here does not start":  {view{pod: pod(failed)}, actWait},
		"a rejected pod does not start":                 {view{pod: pod(), rejected: true}, actWait},
		"a pod that is being started is waited for":     {view{pod: pod(), applying: true}, actWait},
		"another pod of the name is waited for":         {view{pod: pod(), local: other}, actWaitForEnd},

		"a deleted pod stops":                     {view{pod: pod(deleted(30)), local: alive, applied: true}, actStop},
		"a deleted pod is not started any longer": {view{pod: pod(deleted(30)), applying: true}, actCancelApply},
		"a stop goes on":                          {view{pod: pod(deleted(30)), local: alive, stopping: new(int64(30))}, actWait},
		"a shorter grace period stops again":      {view{pod: pod(deleted(1)), local: alive, stopping: new(int64(30))}, actStop},
		"a stopped pod reports its end first":     {view{pod: pod(deleted(30)), local: ended}, actWait},
		"a stopped pod is removed":                {view{pod: pod(deleted(30)), local: ended, reported: true}, actRemove},
		"a removed pod reports its end first":     {view{pod: pod(deleted(30))}, actWait},
		"a removed pod is deleted":                {view{pod: pod(deleted(30)), reported: true}, actDeleteFromAPI},
		"a rejected pod is deleted":               {view{pod: pod(deleted(30), failed), rejected: true, reported: true}, actDeleteFromAPI},
		"another pod of the name is not stopped":  {view{pod: pod(deleted(30)), local: other, reported: true}, actDeleteFromAPI},

		"an orphan stops": {view{pod: pod(), orphaned: true, local: alive}, actStop},
		"a stopped orphan is removed, as nobody waits":    {view{pod: pod(), orphaned: true, local: ended}, actRemove},
		"a removed orphan is forgotten":                   {view{pod: pod(), orphaned: true}, actForget},
		"an orphan does not stop another pod of its name": {view{pod: pod(), orphaned: true, local: other}, actForget},
	} {
		if got := decide(&tc.view); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
