package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
)

// Facts is what the node reports of this host. Sizes are in bytes.
type Facts struct {
	MilliCPU int64
	Memory   int64
	Storage  int64
	Devices  map[corev1.ResourceName]int64 // that pods can request by number
	Images   []corev1.ContainerImage
	System   corev1.NodeSystemInfo
	Reason   string // why no pods can run here; "" if they can
}

// Registration is the node's object in the API server, and its lease.
type Registration struct {
	Name      string
	Addresses []string // IPs
	Labels    map[string]string
	Taints    []corev1.Taint // when the node is registered for the first time
	MaxPods   int64
	Port      int32 // of the kubelet's API
	Facts     func() (*Facts, error)
	Network   *Network  // nil: pods of other nodes are not reached
	Pressure  *Pressure // nil: pods may request all that the host has

	wakeup      chan struct{} // see wake
	known       chan struct{} // closed when the API server has the node
	once        sync.Once
	mu          sync.Mutex
	node        *corev1.Node        // as the API server has it; nil until it has answered
	sent        time.Time           // when the status was last sent
	allocatable corev1.ResourceList // see Allocatable
	problem     report.LastError
}

// The kubelet's intervals (nodeStatusUpdateFrequency, nodeStatusReportFrequency, nodeLeaseDurationSeconds).
const (
	statusInterval = 10 * time.Second
	statusMaximum  = 5 * time.Minute
	leaseSeconds   = 40
)

// object returns the node as the API server has it; nil until it has answered.
func (r *Registration) object() *corev1.Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.node
}

// Allocatable returns how much of this host pods may use, as it was last read; nil: it could not be read.
func (r *Registration) Allocatable() corev1.ResourceList {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.allocatable
}

// readFacts reads what the node reports of this host.
func (r *Registration) readFacts() (*Facts, error) {
	facts, err := r.Facts()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allocatable, _ = r.Pressure.allocatable(r.capacity(facts))
	return facts, nil
}

// read reads the node from the API server.
func (r *Registration) read(ctx context.Context, c *kubeapi.Client) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	n := &corev1.Node{}
	if err := c.Get(ctx, nodePath(r.Name), n); err != nil {
		return nil, fmt.Errorf("read node %s: %w", r.Name, err)
	}
	return n, nil
}

// run keeps the node and its lease up to date until ctx ends.
func (r *Registration) run(ctx context.Context, a *Agent) {
	for ctx.Err() == nil {
		err := r.update(ctx, a.Client)
		if r.object() != nil { // it is registered
			err = errors.Join(err, r.renewLease(ctx, a.Client))
		}
		if ctx.Err() == nil {
			r.problem.Print(a.ErrOut, err)
		}
		timer := time.NewTimer(statusInterval)
		select {
		case <-ctx.Done():
		case <-r.wakeup:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// wake makes run report the node now.
func (r *Registration) wake() {
	select {
	case r.wakeup <- struct{}{}:
	default: // a wake-up is pending already
	}
}

func nodePath(name string) string { return "/api/v1/nodes/" + url.PathEscape(name) }

// update registers the node, or sends what has changed since the last call.
func (r *Registration) update(ctx context.Context, c *kubeapi.Client) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	facts, err := r.readFacts()
	if err != nil {
		return err
	}
	n := &corev1.Node{}
	err = c.Get(ctx, nodePath(r.Name), n)
	if apierrors.IsNotFound(err) {
		first := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Spec: corev1.NodeSpec{Taints: r.Taints}}
		r.setMetadata(first, facts)
		r.setStatus(first, facts, time.Now())
		err = c.Create(ctx, "/api/v1/nodes", first, n)
	}
	if err != nil {
		return fmt.Errorf("register node %s: %w", r.Name, err)
	}
	r.setObject(n.DeepCopy())
	if next := n.DeepCopy(); r.setMetadata(next, facts) {
		if err := patch(ctx, c, nodePath(r.Name), metadataPatch(n, next), n); err != nil {
			return fmt.Errorf("update the labels and annotations of node %s: %w", r.Name, err)
		}
	}
	next := n.DeepCopy()
	r.setStatus(next, facts, time.Now())
	if unchanged(&n.Status, &next.Status) && time.Since(r.sent) < statusMaximum {
		r.setObject(n)
		return nil
	}
	if err := patch(ctx, c, nodePath(r.Name)+"/status", statusPatch(&n.Status, &next.Status), n); err != nil {
		return fmt.Errorf("report the status of node %s: %w", r.Name, err)
	}
	r.sent = time.Now()
	r.setObject(n)
	return nil
}

// ReportShutdown reports that the node is not ready because the machine shuts down (kubelet: pkg/kubelet/nodeshutdown).
// It is called after Run has ended.
func (a *Agent) ReportShutdown(ctx context.Context) error {
	r := a.Node
	if r.object() == nil {
		return nil // it was never registered
	}
	facts := r.Facts
	r.Facts = func() (*Facts, error) {
		f, err := facts()
		if err == nil {
			f.Reason = "node is shutting down"
		}
		return f, err
	}
	return r.update(ctx, a.Client)
}

func (r *Registration) setObject(n *corev1.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node = n
	r.once.Do(func() { close(r.known) })
}

// unchanged reports whether two statuses differ at most in the times of heartbeats.
func unchanged(a, b *corev1.NodeStatus) bool {
	without := func(st *corev1.NodeStatus) *corev1.NodeStatus {
		st = st.DeepCopy()
		for i := range st.Conditions {
			st.Conditions[i].LastHeartbeatTime = metav1.Time{}
		}
		return st
	}
	return equality.Semantic.DeepEqual(without(a), without(b))
}

// annotationDevices has the kinds of devices that the node has, or had, by which it knows its own extended resources.
const annotationDevices = "podrun.dev/devices"

// deviceKinds returns the kinds of devices that the node has, or had, sorted.
func deviceKinds(n *corev1.Node, f *Facts) []corev1.ResourceName {
	kinds := slices.Collect(maps.Keys(f.Devices))
	for _, kind := range strings.Fields(n.Annotations[annotationDevices]) {
		kinds = append(kinds, corev1.ResourceName(kind))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// setMetadata sets the node's own labels and annotations, and reports whether it has changed one.
func (r *Registration) setMetadata(n *corev1.Node, f *Facts) (changed bool) {
	labels := map[string]string{corev1.LabelHostname: r.Name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH}
	maps.Copy(labels, r.Labels)
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	for name, value := range labels {
		if has, ok := n.Labels[name]; !ok || has != value {
			n.Labels[name], changed = value, true
		}
	}
	annotations := map[string]string{}
	maps.Copy(annotations, r.Network.annotations())
	if kinds := deviceKinds(n, f); len(kinds) > 0 {
		annotations[annotationDevices] = strings.Trim(fmt.Sprint(kinds), "[]")
	}
	for _, name := range []string{annotationKey, annotationEndpoint, annotationDevices} {
		value, has := n.Annotations[name]
		switch want, wanted := annotations[name]; {
		case wanted && (!has || value != want):
			if n.Annotations == nil {
				n.Annotations = map[string]string{}
			}
			n.Annotations[name], changed = want, true
		case !wanted && has: // of an earlier run
			delete(n.Annotations, name)
			changed = true
		}
	}
	return changed
}

// capacity returns the resources of this host.
func (r *Registration) capacity(f *Facts) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(f.MilliCPU, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(f.Memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(f.Storage, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(r.MaxPods, resource.DecimalSI),
	}
}

// Check returns an error if the flags keep more from the pods than this host has, as far as that can be read.
func (r *Registration) Check() error {
	facts, err := r.readFacts()
	if err != nil {
		return nil // run prints it, and tries again
	}
	capacity := r.capacity(facts)
	if _, name := r.Pressure.allocatable(capacity); name != "" {
		q := capacity[name]
		return fmt.Errorf("--system-reserved, --kube-reserved and --eviction-hard keep more %s than the %v of this host", name, &q)
	}
	return nil
}

// setStatus sets the status of the node. It keeps conditions and extended resources that other components have set
// (kubelet: pkg/kubelet/nodestatus, MachineInfo).
func (r *Registration) setStatus(n *corev1.Node, f *Facts, now time.Time) {
	st := &n.Status
	if st.Capacity == nil {
		st.Capacity = corev1.ResourceList{}
	}
	maps.Copy(st.Capacity, r.capacity(f))
	for _, kind := range deviceKinds(n, f) { // as in the kubelet, a resource that is gone has the capacity 0
		st.Capacity[kind] = *resource.NewQuantity(f.Devices[kind], resource.DecimalSI)
	}
	st.Allocatable, _ = r.Pressure.allocatable(st.Capacity)
	st.Addresses = r.HostAddresses()
	st.DaemonEndpoints.KubeletEndpoint.Port = r.Port
	st.NodeInfo, st.Images = f.System, f.Images
	for _, c := range conditions(f, r.Pressure.conditions(), r.Network.condition()) {
		c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		setCondition(st, c)
	}
}

// HostAddresses returns the addresses of the node in the form of the API.
func (r *Registration) HostAddresses() (all []corev1.NodeAddress) {
	for _, ip := range r.Addresses {
		all = append(all, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return append(all, corev1.NodeAddress{Type: corev1.NodeHostName, Address: r.Name})
}

// setCondition sets one condition. The time of its transition stays if its status does.
func setCondition(st *corev1.NodeStatus, c corev1.NodeCondition) {
	for i := range st.Conditions {
		if old := &st.Conditions[i]; old.Type == c.Type {
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			*old = c
			return
		}
	}
	st.Conditions = append(st.Conditions, c)
}

// conditions returns the node's conditions, with the kubelet's reasons and messages (pkg/kubelet/nodestatus). pressure has
// those of pressure that are True, network is the condition of its network.
func conditions(f *Facts, pressure []corev1.NodeConditionType, network corev1.NodeCondition) []corev1.NodeCondition {
	choose := func(kind corev1.NodeConditionType, is bool, yes, no [2]string) corev1.NodeCondition {
		if is {
			return corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue, Reason: yes[0], Message: yes[1]}
		}
		return corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: no[0], Message: no[1]}
	}
	under := func(kind corev1.NodeConditionType, yes, no [2]string) corev1.NodeCondition {
		return choose(kind, slices.Contains(pressure, kind), yes, no)
	}
	return []corev1.NodeCondition{
		under(corev1.NodeMemoryPressure, [2]string{"KubeletHasInsufficientMemory", "kubelet has insufficient memory available"}, [2]string{"KubeletHasSufficientMemory", "kubelet has sufficient memory available"}),
		under(corev1.NodeDiskPressure, [2]string{"KubeletHasDiskPressure", "kubelet has disk pressure"}, [2]string{"KubeletHasNoDiskPressure", "kubelet has no disk pressure"}),
		under(corev1.NodePIDPressure, [2]string{"KubeletHasInsufficientPID", "kubelet has insufficient PID available"}, [2]string{"KubeletHasSufficientPID", "kubelet has sufficient PID available"}),
		network,
		choose(corev1.NodeReady, f.Reason == "", [2]string{"KubeletReady", "podrun is posting ready status"}, [2]string{"KubeletNotReady", f.Reason}),
	}
}

// renewLease renews the node's lease. If the lease expires, the cluster takes the node for gone.
func (r *Registration) renewLease(ctx context.Context, c *kubeapi.Client) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	const leases = "/apis/coordination.k8s.io/v1/namespaces/" + corev1.NamespaceNodeLease + "/leases"
	path, l := leases+"/"+url.PathEscape(r.Name), &coordinationv1.Lease{}
	err := c.Get(ctx, path, l)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("renew the lease of node %s: %w", r.Name, err)
	}
	n := r.object()
	l.Name, l.Namespace = r.Name, corev1.NamespaceNodeLease
	l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &r.Name, new(int32(leaseSeconds))
	l.Spec.RenewTime = new(metav1.NowMicro())
	if missing {
		err = c.Create(ctx, leases, l, nil)
	} else {
		err = c.Update(ctx, path, l, nil)
	}
	if err != nil {
		return fmt.Errorf("renew the lease of node %s: %w", r.Name, err)
	}
	return nil
}
