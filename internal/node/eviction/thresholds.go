// Package eviction decides what a node does under pressure, as the kubelet does: which conditions it has, which pods it
// admits, and which pod it evicts. It reads nothing of the host.
package eviction

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Signal is what a threshold is about (kubelet: pkg/kubelet/eviction/api/types.go).
type Signal string

// The signals. Of nodefs are podrun's data, of imagefs the images.
const (
	MemoryAvailable   Signal = "memory.available"
	NodeFSAvailable   Signal = "nodefs.available"
	NodeFSInodesFree  Signal = "nodefs.inodesFree"
	ImageFSAvailable  Signal = "imagefs.available"
	ImageFSInodesFree Signal = "imagefs.inodesFree"
	PIDAvailable      Signal = "pid.available"
)

// Resources that pods use and cannot request.
const (
	Inodes corev1.ResourceName = "inodes"
	PIDs   corev1.ResourceName = "pids"
)

// signals has the effect of each signal (kubelet: pkg/kubelet/eviction/helpers.go, signalToNodeCondition and
// signalToResource).
var signals = map[Signal]struct {
	condition corev1.NodeConditionType
	resource  corev1.ResourceName
}{
	MemoryAvailable:   {corev1.NodeMemoryPressure, corev1.ResourceMemory},
	NodeFSAvailable:   {corev1.NodeDiskPressure, corev1.ResourceEphemeralStorage},
	NodeFSInodesFree:  {corev1.NodeDiskPressure, Inodes},
	ImageFSAvailable:  {corev1.NodeDiskPressure, corev1.ResourceEphemeralStorage},
	ImageFSInodesFree: {corev1.NodeDiskPressure, Inodes},
	PIDAvailable:      {corev1.NodePIDPressure, PIDs},
}

// Resource returns what pods use too much of.
func (s Signal) Resource() corev1.ResourceName { return signals[s].resource }

// Defaults are the kubelet's thresholds (pkg/kubelet/eviction/defaults_linux.go, DefaultEvictionHard).
func Defaults() []string {
	return []string{"memory.available<100Mi", "nodefs.available<10%", "imagefs.available<15%", "nodefs.inodesFree<5%", "imagefs.inodesFree<5%"}
}

// Threshold is met if a signal is below it.
type Threshold struct {
	Signal   Signal
	Quantity resource.Quantity // zero: Percent applies
	Percent  float64           // of the capacity
}

// quantity returns the threshold for a capacity (kubelet: pkg/kubelet/eviction/api/types.go, GetThresholdQuantity).
func (t *Threshold) quantity(capacity int64) resource.Quantity {
	if !t.Quantity.IsZero() {
		return t.Quantity
	}
	return *resource.NewQuantity(int64(float64(capacity)*t.Percent/100), resource.BinarySI)
}

// ParseThresholds reads thresholds of the form SIGNAL<QUANTITY or SIGNAL<PERCENT%. As in the kubelet 0% and 100% are no
// thresholds (pkg/kubelet/eviction/helpers.go, parseThresholdStatement).
func ParseThresholds(words []string) (all []Threshold, err error) {
	for _, w := range words {
		name, value, ok := strings.Cut(w, "<")
		t := Threshold{Signal: Signal(name)}
		if _, known := signals[t.Signal]; !known || !ok {
			return nil, fmt.Errorf("%q: use SIGNAL<QUANTITY, as in memory.available<100Mi, with the signal memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree or pid.available", w)
		}
		if slices.ContainsFunc(all, func(o Threshold) bool { return o.Signal == t.Signal }) {
			return nil, fmt.Errorf("%s is given twice", t.Signal)
		}
		if percent, ok := strings.CutSuffix(value, "%"); ok {
			t.Percent, err = strconv.ParseFloat(percent, 64)
			if err != nil || !(t.Percent >= 0 && t.Percent <= 100) {
				return nil, fmt.Errorf("%q: %q is no percentage from 0%% to 100%%", w, value)
			}
		} else if t.Quantity, err = resource.ParseQuantity(value); err != nil || t.Quantity.Sign() <= 0 {
			return nil, fmt.Errorf("%q: %q is no positive quantity, as 100Mi, and no percentage", w, value)
		}
		if t.Quantity.IsZero() && (t.Percent == 0 || t.Percent == 100) {
			continue
		}
		all = append(all, t)
	}
	return all, nil
}

// ParseReserved reads amounts of the form RESOURCE=QUANTITY that pods may not request.
func ParseReserved(words []string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch name := corev1.ResourceName(key); name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			q, err := resource.ParseQuantity(value)
			if err != nil || q.Sign() < 0 {
				return nil, fmt.Errorf("%q: use %s=QUANTITY, as in cpu=200m or memory=500Mi", w, name)
			}
			if _, twice := list[name]; twice {
				return nil, fmt.Errorf("%s is given twice", name)
			}
			list[name] = q
		case "pid":
			return nil, fmt.Errorf("%q: podrun does not limit the processes of all pods together: pid.available<NUMBER in --eviction-hard keeps some free", w)
		default:
			return nil, fmt.Errorf("%q: only cpu, memory and ephemeral-storage can be reserved", w)
		}
	}
	return list, nil
}

// Allocatable returns how much of a capacity pods may request: what is neither reserved nor below a threshold (kubelet:
// pkg/kubelet/cm/node_container_manager_linux.go, GetNodeAllocatableReservation). exceeded is the first resource of which
// more is reserved than there is, "" if there is none.
func Allocatable(capacity corev1.ResourceList, reserved []corev1.ResourceList, thresholds []Threshold) (allocatable corev1.ResourceList, exceeded corev1.ResourceName) {
	allocatable = capacity.DeepCopy()
	kept := corev1.ResourceList{}
	for _, t := range thresholds {
		if t.Signal == MemoryAvailable || t.Signal == NodeFSAvailable {
			total := capacity[t.Signal.Resource()]
			kept[t.Signal.Resource()] = t.quantity(total.Value())
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		left := allocatable[name]
		for _, list := range append(slices.Clone(reserved), kept) {
			left.Sub(list[name])
		}
		if left.Sign() < 0 {
			if exceeded == "" {
				exceeded = name
			}
			left.Set(0)
		}
		allocatable[name] = left
	}
	return allocatable, exceeded
}
