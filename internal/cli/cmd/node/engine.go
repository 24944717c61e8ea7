package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	manifeststatus "github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// engine runs the pods of a node as podrun up does.
type engine struct {
	env         *cmdutil.Env
	dirs        store.Dirs
	launcher    cmdutil.PodLauncher
	sysctls     []string                   // --allow-unsafe-sysctl
	cluster     *pod.Cluster               // of the pods
	routes      *routes                    // nil unless the node routes
	changed     func()                     // is called when something changes
	allocatable func() corev1.ResourceList // returns how much of the host pods may use
}

// Find implements node.Engine.
func (e *engine) Find(namespace, name string) (*node.Local, error) {
	p := e.dirs.Pod(namespace, name)
	if !p.Exists() {
		return nil, nil
	}
	info, err := resource.LoadPod(p)
	if errors.Is(err, fs.ErrNotExist) { // it is being removed
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plan, err := p.Plan()
	if errors.Is(err, fs.ErrNotExist) { // likewise
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	local := &node.Local{UID: types.UID(plan.UID), Alive: p.Alive(), Pod: manifeststatus.Render(info.Manifest, info.Status)}
	if local.Alive {
		return local, nil
	}
	last, err := p.Status()
	local.Ended = err == nil && last.Phase.Terminal() && last.Reason != pod.ReasonTerminated || // its end was recorded
		plan.RestartPolicy == pod.RestartNever && podview.HasRun(p, plan) // no container may run twice
	return local, nil
}

// Apply implements node.Engine.
func (e *engine) Apply(ctx context.Context, uid types.UID, m *corev1.Pod) error {
	p := e.dirs.Pod(m.Namespace, m.Name)
	running, err := p.Plan()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case running.UID != string(uid):
		return fmt.Errorf("pod %s/%s exists already", m.Namespace, m.Name)
	default:
		if m, err = withoutPtrace(p, running, m); err != nil {
			return err
		}
		return e.change(ctx, uid, running, m)
	}
	return e.apply(ctx, uid, m)
}

// change changes a running pod. An ephemeral container that is refused does not keep the others from starting.
func (e *engine) change(ctx context.Context, uid types.UID, running *pod.Plan, m *corev1.Pod) error {
	isNew := func(c corev1.EphemeralContainer) bool {
		_, has := running.Container(c.Name)
		return !has
	}
	failed := e.apply(ctx, uid, m)
	if failed == nil || !slices.ContainsFunc(m.Spec.EphemeralContainers, isNew) {
		return failed
	}
	accepted := m.DeepCopy()
	accepted.Spec.EphemeralContainers = slices.DeleteFunc(accepted.Spec.EphemeralContainers, isNew)
	if err := e.apply(ctx, uid, accepted); err != nil {
		return err
	}
	refused := node.RefusedContainers{}
	for _, c := range m.Spec.EphemeralContainers {
		if !isNew(c) {
			continue
		}
		next := accepted.DeepCopy()
		next.Spec.EphemeralContainers = append(next.Spec.EphemeralContainers, c)
		if err := e.apply(ctx, uid, next); err != nil {
			refused[c.Name] = err
		} else {
			accepted = next
		}
	}
	if len(refused) > 0 {
		return refused
	}
	return nil
}

// apply starts a pod, or changes the running one to its manifest.
func (e *engine) apply(ctx context.Context, uid types.UID, m *corev1.Pod) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode pod %s: %w", m.Name, err)
	}
	docs, err := resource.Load([]resource.Source{{Name: "the cluster's pod", Data: text, Namespace: m.Namespace}})
	if err != nil {
		return err
	}
	env := *e.env // New sets its field Changed
	run, err := podup.New(ctx, &env, nil, docs, podup.Options{UnsafeSysctls: e.sysctls, Cluster: e.cluster, Allocatable: e.allocatable()})
	if err != nil {
		return err
	}
	run.Background, run.ReportTo = true, io.Discard
	for _, t := range run.Targets {
		t.UID = string(uid)
	}
	if err := run.Prepare(ctx); err != nil {
		run.Release()
		return err
	}
	return run.Start()
}

// withoutPtrace takes SYS_PTRACE away from the ephemeral containers of a pod that shares its user namespace with
// others, whose processes they could trace. kubectl debug adds it by its default profile, general; podrun debug
// leaves it out there, too. An event reports it.
func withoutPtrace(p store.Pod, running *pod.Plan, m *corev1.Pod) (*corev1.Pod, error) {
	if running.OwnUserNS && os.Geteuid() != 0 {
		return m, nil
	}
	const ptrace corev1.Capability = "SYS_PTRACE"
	m = m.DeepCopy()
	for i := range m.Spec.EphemeralContainers {
		c := &m.Spec.EphemeralContainers[i]
		if c.SecurityContext == nil || c.SecurityContext.Capabilities == nil || !slices.Contains(c.SecurityContext.Capabilities.Add, ptrace) {
			continue
		}
		added := c.SecurityContext.Capabilities
		added.Add = slices.DeleteFunc(added.Add, func(c corev1.Capability) bool { return c == ptrace })
		_, has := running.Container(c.Name)
		if has {
			continue
		}
		message := "The container does not get SYS_PTRACE: the pod shares its user namespace with other pods. If a container of its manifest adds SYS_PTRACE, the pod has a user namespace of its own."
		if err := p.AddEvents(pod.Event{Type: pod.Warning, Reason: "CapabilityOmitted", Container: c.Name, Last: time.Now(), Message: message}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// SetCondition implements node.Engine.
func (e *engine) SetCondition(ctx context.Context, namespace, name string, c *corev1.PodCondition) error {
	ctx, cancel := context.WithTimeout(ctx, podclient.NotifyTime)
	defer cancel()
	request := &wire.ConditionRequest{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message}
	return podclient.Request(ctx, e.dirs.Pod(namespace, name), wire.Request{Verb: wire.SetCondition, Condition: request})
}

// Stop implements node.Engine.
func (e *engine) Stop(ctx context.Context, namespace, name string, grace int64) error {
	return podclient.Stop(ctx, e.dirs.Pod(namespace, name), podclient.StopOptions{Grace: &grace})
}

// Evict implements node.Engine.
func (e *engine) Evict(ctx context.Context, namespace, name, message string) error {
	const grace = 1 // second (kubelet: immediateEvictionGracePeriodSeconds)
	return podclient.Stop(ctx, e.dirs.Pod(namespace, name), podclient.StopOptions{Grace: new(int64(grace)), Evicted: message})
}

// Remove implements node.Engine.
func (e *engine) Remove(ctx context.Context, namespace, name string) error {
	return podclient.Remove(ctx, e.dirs.Pod(namespace, name), e.launcher.Remove)
}

// Events implements node.Engine.
func (e *engine) Events(namespace, name string) ([]corev1.Event, error) {
	p := e.dirs.Pod(namespace, name)
	events, err := p.Events()
	if err != nil || len(events) == 0 {
		return nil, err
	}
	text, err := p.Manifest()
	if errors.Is(err, fs.ErrNotExist) { // it is being removed
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := manifest.Unmarshal(text)
	if err != nil {
		return nil, fmt.Errorf("read manifest of pod %s: %w", name, err)
	}
	return manifeststatus.Events(m, events), nil
}

// Watch implements node.Engine.
func (e *engine) Watch(ctx context.Context, changed func(namespace, name string)) error {
	lives := dirwatch.NewLivenessWatcher(e.dirs)
	var polls sync.WaitGroup
	polls.Go(func() { lives.Watch(ctx) })
	defer polls.Wait()
	states := map[store.Pod]podState{}
	err := dirwatch.While(ctx, e.watched, lives.Changed, func() (bool, error) {
		if err := lives.Snapshot(); err != nil {
			return false, err
		}
		next, err := e.states()
		if err != nil {
			return false, err
		}
		for p, st := range next {
			if states[p] != st {
				e.linkLogs(p)
				e.changed()
				changed(p.Namespace, p.Name)
			}
			delete(states, p)
		}
		for p := range states { // they are gone
			e.linkLogs(p)
			changed(p.Namespace, p.Name)
		}
		states = next
		return true, nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// linkLogs links the logs of a pod's containers for the pods that collect logs.
func (e *engine) linkLogs(p store.Pod) {
	if err := p.LinkLogs(); err != nil {
		report.Print(e.env.ErrOut, err)
	}
}

// watched returns the directories in which changes of pods appear.
func (e *engine) watched() ([]string, error) {
	list, err := e.dirs.WatchDirs()
	if err != nil {
		return nil, err
	}
	pods, err := e.dirs.Pods()
	for _, p := range pods {
		list = append(list, p.RuntimeDir())
	}
	return list, err
}

// podState changes when files of a pod are replaced, such as its status, or when its processes end.
type podState struct {
	changed time.Time // of the runtime directory
	alive   bool
}

// states returns the states of all pods.
func (e *engine) states() (map[store.Pod]podState, error) {
	if _, err := podclient.RecoverLost(context.Background(), e.dirs, e.env.ErrOut); err != nil {
		report.Print(e.env.ErrOut, err)
	}
	pods, err := e.dirs.Pods()
	if err != nil {
		return nil, err
	}
	states := map[store.Pod]podState{}
	for _, p := range pods {
		st := podState{alive: p.Alive()}
		if info, err := os.Stat(p.RuntimeDir()); err == nil {
			st.changed = info.ModTime()
		}
		states[p] = st
	}
	return states, nil
}
