package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
)

// Drain moves the pods of a node to other nodes as kubectl drain does, with the credentials of the node: these permit
// it to change its own object and to evict its own pods (Kubernetes: plugin/pkg/admission/noderestriction).
type Drain struct {
	Client *kubeapi.Client
	Name   string        // of the node
	Grace  *int64        // seconds that the pods have to stop; nil: their own
	Limit  time.Duration // of the whole; 0: none
	Force  bool          // evict also pods without a controller, which nothing creates again
	Out    io.Writer
}

const (
	evictRetry = 5 * time.Second // kubectl: EvictErrorRetryDelay
	drainPoll  = time.Second
)

// Run cordons the node, evicts its pods, and returns when they are gone.
func (d *Drain) Run(ctx context.Context) error {
	change := []byte(`{"spec":{"unschedulable":true}}`)
	if err := d.Client.Patch(ctx, nodePath(d.Name), types.MergePatchType, change, nil); err != nil {
		return fmt.Errorf("cordon node %s: %w", d.Name, err)
	}
	fmt.Fprintf(d.Out, "node/%s cordoned\n", d.Name)
	pods, err := d.Pods(ctx)
	if err != nil {
		return err
	}
	if err := d.evict(ctx, pods); err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "node/%s drained\n", d.Name)
	return nil
}

// Pods returns the pods that are to be evicted. It leaves out pods of DaemonSets, which would create them again here.
func (d *Drain) Pods(ctx context.Context) (evicted []*corev1.Pod, err error) {
	all, err := d.list(ctx)
	if err != nil {
		return nil, err
	}
	var ignored, alone []string
	for i := range all {
		p := &all[i]
		owner := metav1.GetControllerOf(p)
		switch {
		case hasEnded(&p.Status):
			evicted = append(evicted, p)
		case owner != nil && owner.Kind == "DaemonSet":
			ignored = append(ignored, p.Namespace+"/"+p.Name)
		case owner == nil && p.DeletionTimestamp == nil && !d.Force:
			alone = append(alone, p.Namespace+"/"+p.Name)
		default:
			evicted = append(evicted, p)
		}
	}
	if len(alone) > 0 {
		return nil, report.New(report.Failure, "--force evicts them", "no controller creates these pods again: %s", strings.Join(alone, ", "))
	}
	if len(ignored) > 0 {
		fmt.Fprintf(d.Out, "ignoring the pods of DaemonSets: %s\n", strings.Join(ignored, ", "))
	}
	return evicted, nil
}

// list returns all pods that are bound to the node.
func (d *Drain) list(ctx context.Context) ([]corev1.Pod, error) {
	l := &corev1.PodList{}
	if err := d.Client.Get(ctx, "/api/v1/pods?"+url.Values{"fieldSelector": {"spec.nodeName=" + d.Name}}.Encode(), l); err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", d.Name, err)
	}
	return l.Items, nil
}

// evicting is a pod that is being evicted.
type evicting struct {
	*corev1.Pod
	done bool      // the API server has accepted the eviction
	next time.Time // when it is requested again
	text string    // why it was not accepted, as printed
}

// evict evicts pods until none of them is left.
func (d *Drain) evict(ctx context.Context, pods []*corev1.Pod) error {
	if d.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d.Limit, fmt.Errorf("the pods have not ended within %v", d.Limit))
		defer cancel()
	}
	left := map[types.UID]*evicting{}
	for _, p := range pods {
		left[p.UID] = &evicting{Pod: p, done: p.DeletionTimestamp != nil}
	}
	var errs []error
	for {
		for uid, p := range left {
			if p.done || time.Now().Before(p.next) || ctx.Err() != nil {
				continue
			}
			if err := d.request(ctx, p); err != nil {
				errs = append(errs, err)
				delete(left, uid)
			}
		}
		if len(left) == 0 {
			return errors.Join(errs...)
		}
		if sleep.For(ctx, drainPoll) != nil {
			return errors.Join(append(errs, fmt.Errorf("drain node %s: %w: %s", d.Name, context.Cause(ctx), namesOf(left)))...)
		}
		all, err := d.list(ctx)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for uid, p := range left {
			if !slices.ContainsFunc(all, func(o corev1.Pod) bool { return o.UID == uid }) {
				fmt.Fprintf(d.Out, "pod/%s evicted\n", p.Name)
				delete(left, uid)
			}
		}
	}
}

// evictionRequest is the policy/v1 Eviction. The package k8s.io/api/policy/v1 is in podrun for nothing else.
type evictionRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	DeleteOptions     metav1.DeleteOptions `json:"deleteOptions"`
}

// request requests the eviction of a pod. If a PodDisruptionBudget delays it, or the pod's namespace is being removed,
// it is requested again later.
func (d *Drain) request(ctx context.Context, p *evicting) error {
	if p.text == "" {
		fmt.Fprintf(d.Out, "evicting pod %s/%s\n", p.Namespace, p.Name)
	}
	e := &evictionRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: metav1.DeleteOptions{GracePeriodSeconds: d.Grace, Preconditions: &metav1.Preconditions{UID: &p.UID}},
	}
	err := d.Client.Create(ctx, kubeapi.PodPath(p.Namespace, p.Name, "eviction"), e, nil)
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err): // it is gone, or another pod has its name
		p.done = true
	case ctx.Err() != nil:
	case apierrors.IsTooManyRequests(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		p.next = time.Now().Add(evictRetry)
		if text := reason(err); text != p.text {
			p.text = text
			fmt.Fprintf(d.Out, "pod %s/%s: %s (podrun tries again)\n", p.Namespace, p.Name, text)
		}
	default:
		return fmt.Errorf("evict pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// reason returns the API server's message, and what it adds about a PodDisruptionBudget.
func reason(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	text := status.Status().Message
	if details := status.Status().Details; details != nil {
		for _, c := range details.Causes {
			text += " " + c.Message
		}
	}
	return text
}

func namesOf(pods map[types.UID]*evicting) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// RemoveLocal stops the recorded pods and removes them from this host. grace is their grace period in seconds; nil
// means each pod's own. A pod of the user that has the name of a recorded pod stays.
func RemoveLocal(ctx context.Context, e Engine, records Records, grace *int64) error {
	pods, err := records.Load()
	if err != nil {
		return err
	}
	results := make(chan error)
	for _, p := range pods {
		go func() {
			err := removeLocal(ctx, e, p, grace)
			if err == nil {
				err = records.Remove(p.UID)
			}
			results <- err
		}()
	}
	var errs []error
	for range pods {
		errs = append(errs, <-results)
	}
	return errors.Join(errs...)
}

func removeLocal(ctx context.Context, e Engine, p *corev1.Pod, grace *int64) error {
	local, err := e.Find(p.Namespace, p.Name)
	if err != nil || local == nil || local.UID != p.UID {
		return err
	}
	if local.Alive {
		if grace == nil {
			grace = new(gracePeriod(p))
		}
		if err := e.Stop(ctx, p.Namespace, p.Name, *grace); err != nil {
			return fmt.Errorf("stop pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	if err := e.Remove(ctx, p.Namespace, p.Name); err != nil {
		return fmt.Errorf("remove pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}
