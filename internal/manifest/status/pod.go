package status

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/resources"
	"github.com/podrun/podrun/internal/pod"
)

// Render returns the Pod with its PodStatus. A nil status stands for a pod that was only created.
func Render(p *corev1.Pod, st *pod.Status) *corev1.Pod {
	if st == nil {
		st = &pod.Status{Phase: pod.Pending}
	}
	p = p.DeepCopy()
	p.APIVersion, p.Kind = "v1", "Pod"
	if d := st.Deletion; d != nil && !st.Phase.Terminal() {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(d.At)), new(d.GraceSeconds)
	}
	defaulting.SetPullPolicies(&p.Spec)
	p.Status = corev1.PodStatus{
		ObservedGeneration:    p.Generation,
		Phase:                 corev1.PodPhase(st.Phase),
		Reason:                st.Reason,
		Message:               st.Message,
		StartTime:             timeOrNil(st.StartTime),
		QOSClass:              resources.QOSClass(p),
		InitContainerStatuses: containerStatuses(p, p.Spec.InitContainers, st, st.InitContainers),
		ContainerStatuses:     containerStatuses(p, p.Spec.Containers, st, st.Containers),

		EphemeralContainerStatuses: ephemeralStatuses(p, st),
	}
	for i, ip := range st.PodIPs {
		if i == 0 {
			p.Status.PodIP = ip
		}
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	for i, ip := range st.HostIPs {
		if i == 0 {
			p.Status.HostIP = ip
		}
		p.Status.HostIPs = append(p.Status.HostIPs, corev1.HostIP{IP: ip})
	}
	if r := p.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		p.Status.AllocatedResources, p.Status.Resources = r.Requests, r
	}
	for _, c := range st.Conditions {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type:               corev1.PodConditionType(c.Type),
			ObservedGeneration: p.Generation,
			Status:             corev1.ConditionStatus(c.Status),
			Reason:             c.Reason,
			Message:            c.Message,
			LastTransitionTime: metav1.NewTime(c.LastTransition),
		})
	}
	return p
}

// containerStatuses returns one status per container of the manifest, in its order.
func containerStatuses(p *corev1.Pod, containers []corev1.Container, st *pod.Status, known []pod.ContainerStatus) []corev1.ContainerStatus {
	byName := map[string]pod.ContainerStatus{}
	for _, s := range known {
		byName[s.Name] = s
	}
	var out []corev1.ContainerStatus
	for _, c := range containers {
		s := byName[c.Name]
		status := corev1.ContainerStatus{
			Name:                 c.Name,
			State:                containerState(s.State),
			LastTerminationState: containerState(s.LastState),
			Ready:                s.Ready,
			RestartCount:         int32(s.RestartCount),
			Image:                s.Image,
			ImageID:              s.ImageID,
			ContainerID:          s.ContainerID,
			Started:              new(s.Started),
			User:                 containerUser(s.User),
			VolumeMounts:         mountStatuses(c.VolumeMounts, !st.ShallowReadOnly),
		}
		setAllocated(&status, &c.Resources)
		if status.Image == "" {
			status.Image = c.Image
		}
		if status.State == (corev1.ContainerState{}) {
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: pod.FirstReason(len(p.Spec.InitContainers))}
		}
		out = append(out, status)
	}
	return out
}

func containerUser(u *pod.User) *corev1.ContainerUser {
	if u == nil {
		return nil
	}
	linux := &corev1.LinuxContainerUser{UID: int64(u.UID), GID: int64(u.GID)}
	for _, g := range u.Groups {
		linux.SupplementalGroups = append(linux.SupplementalGroups, int64(g))
	}
	return &corev1.ContainerUser{Linux: linux}
}

// mountStatuses returns for each of a container's mounts whether it and all mounts below it are read-only
// (kubelet: convertToAPIContainerStatuses in pkg/kubelet/kubelet_pods.go).
func mountStatuses(mounts []corev1.VolumeMount, recursive bool) []corev1.VolumeMountStatus {
	var out []corev1.VolumeMountStatus
	for _, m := range mounts {
		mount := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mount.RecursiveReadOnly = new(corev1.RecursiveReadOnlyDisabled)
			if r := m.RecursiveReadOnly; r != nil && *r != corev1.RecursiveReadOnlyDisabled && recursive {
				*mount.RecursiveReadOnly = corev1.RecursiveReadOnlyEnabled
			}
		}
		out = append(out, mount)
	}
	return out
}

// setAllocated sets a container's allocated resources. They are as in its manifest, because a change is
// recorded once it is applied.
func setAllocated(s *corev1.ContainerStatus, r *corev1.ResourceRequirements) {
	if len(r.Requests)+len(r.Limits) > 0 {
		s.AllocatedResources = r.Requests
		s.Resources = &corev1.ResourceRequirements{Requests: r.Requests, Limits: r.Limits}
	}
}

func containerState(s pod.State) corev1.ContainerState {
	var out corev1.ContainerState
	switch {
	case s.Waiting != nil:
		out.Waiting = &corev1.ContainerStateWaiting{Reason: s.Waiting.Reason, Message: s.Waiting.Message}
	case s.Running != nil:
		out.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(s.Running.StartedAt)}
	case s.Terminated != nil:
		out.Terminated = &corev1.ContainerStateTerminated{
			ExitCode:    int32(s.Terminated.ExitCode),
			Signal:      int32(s.Terminated.Signal),
			Reason:      s.Terminated.Reason,
			Message:     s.Terminated.Message,
			StartedAt:   metav1.NewTime(s.Terminated.StartedAt),
			FinishedAt:  metav1.NewTime(s.Terminated.FinishedAt),
			ContainerID: s.Terminated.ContainerID,
		}
	}
	return out
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t))
}

// ephemeralStatuses returns the statuses of ephemeral containers. They have no startup probe, so "started"
// is never set.
func ephemeralStatuses(p *corev1.Pod, st *pod.Status) []corev1.ContainerStatus {
	list := containerStatuses(p, podutil.EphemeralContainers(p), st, st.Ephemeral)
	for i := range list {
		list[i].Started = nil
	}
	return list
}
