package describe

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	labelutil "k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

func (p *page) deployment(d *appsv1.Deployment) {
	p.nameAndNamespace(d)
	p.row(0, "CreationTimestamp:", stamp(d.CreationTimestamp))
	p.labelsAndAnnotations(d)
	p.row(0, "Selector:", selector(d.Spec.Selector))
	s := &d.Status
	p.row(0, "Replicas:", fmt.Sprintf("%d desired | %d updated | %d total | %d available | %d unavailable", ptr.Deref(d.Spec.Replicas, 1), s.UpdatedReplicas, s.Replicas, s.AvailableReplicas, s.UnavailableReplicas))
	p.row(0, "StrategyType:", string(d.Spec.Strategy.Type))
	p.row(0, "MinReadySeconds:", fmt.Sprint(d.Spec.MinReadySeconds))
	if ru := d.Spec.Strategy.RollingUpdate; ru != nil {
		p.row(0, "RollingUpdateStrategy:", fmt.Sprintf("%s max unavailable, %s max surge", ru.MaxUnavailable.String(), ru.MaxSurge.String()))
	}
	p.template(&d.Spec.Template)
	var list [][3]string
	for _, c := range s.Conditions {
		list = append(list, [3]string{string(c.Type), string(c.Status), c.Reason})
	}
	p.conditionReasons(list)
}

func (p *page) replicaSet(r *appsv1.ReplicaSet, pods []corev1.Pod) {
	p.nameAndNamespace(r)
	p.row(0, "Selector:", metav1.FormatLabelSelector(r.Spec.Selector))
	p.labelsAndAnnotations(r)
	p.controlledBy(r)
	p.row(0, "Replicas:", fmt.Sprintf("%d current / %d desired", r.Status.Replicas, ptr.Deref(r.Spec.Replicas, 1)))
	p.row(0, "Pods Status:", phases(pods))
	p.template(&r.Spec.Template)
	var list [][3]string
	for _, c := range r.Status.Conditions {
		list = append(list, [3]string{string(c.Type), string(c.Status), c.Reason})
	}
	p.conditionReasons(list)
}

func (p *page) replicationController(r *corev1.ReplicationController, pods []corev1.Pod) {
	p.nameAndNamespace(r)
	p.row(0, "Selector:", labelutil.FormatLabels(r.Spec.Selector))
	p.labelsAndAnnotations(r)
	p.row(0, "Replicas:", fmt.Sprintf("%d current / %d desired", r.Status.Replicas, ptr.Deref(r.Spec.Replicas, 1)))
	p.row(0, "Pods Status:", phases(pods))
	p.template(r.Spec.Template)
}

func (p *page) statefulSet(s *appsv1.StatefulSet, pods []corev1.Pod) {
	p.nameAndNamespace(s)
	p.row(0, "CreationTimestamp:", stamp(s.CreationTimestamp))
	p.row(0, "Selector:", selector(s.Spec.Selector))
	p.labelsAndAnnotations(s)
	p.maybe("Service Name:", s.Spec.ServiceName)
	p.maybe("Pod Management Policy:", string(s.Spec.PodManagementPolicy))
	p.row(0, "Replicas:", fmt.Sprintf("%d desired | %d total", ptr.Deref(s.Spec.Replicas, 1), s.Status.Replicas))
	p.row(0, "Update Strategy:", string(s.Spec.UpdateStrategy.Type))
	if ru := s.Spec.UpdateStrategy.RollingUpdate; ru != nil && ru.Partition != nil {
		p.row(1, "Partition:", fmt.Sprint(*ru.Partition))
		if ru.MaxUnavailable != nil {
			p.row(1, "MaxUnavailable:", ru.MaxUnavailable.String())
		}
	}
	if r := s.Spec.PersistentVolumeClaimRetentionPolicy; r != nil {
		p.row(0, "Persistent Volume Claim Retention Policy:")
		p.row(1, "WhenDeleted:", string(r.WhenDeleted))
		p.row(1, "WhenScaled:", string(r.WhenScaled))
	}
	p.row(0, "Pods Status:", phases(pods))
	p.template(&s.Spec.Template)
	if len(s.Spec.VolumeClaimTemplates) == 0 {
		p.row(0, "Volume Claims:", none)
		return
	}
	p.row(0, "Volume Claims:")
	for i := range s.Spec.VolumeClaimTemplates {
		c := &s.Spec.VolumeClaimTemplates[i]
		p.row(1, "Name:", c.Name)
		p.row(1, "StorageClass:", storageClass(c))
		p.list("  Labels:", labels(c.Labels))
		p.list("  Annotations:", labels(c.Annotations))
		capacity := "<default>"
		if q, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
			capacity = q.String()
		}
		p.row(1, "Capacity:", capacity)
		p.row(1, "Access Modes:", fmt.Sprint(c.Spec.AccessModes))
	}
}

func (p *page) daemonSet(d *appsv1.DaemonSet, pods []corev1.Pod) {
	p.nameAndNamespace(d)
	p.row(0, "Selector:", selector(d.Spec.Selector))
	p.row(0, "Node-Selector:", labelutil.FormatLabels(d.Spec.Template.Spec.NodeSelector))
	p.labelsAndAnnotations(d)
	p.row(0, fmt.Sprintf("Desired Number of Nodes Scheduled: %d", d.Status.DesiredNumberScheduled))
	p.row(0, fmt.Sprintf("Current Number of Nodes Scheduled: %d", d.Status.CurrentNumberScheduled))
	p.row(0, fmt.Sprintf("Number of Nodes Scheduled with Up-to-date Pods: %d", d.Status.UpdatedNumberScheduled))
	p.row(0, fmt.Sprintf("Number of Nodes Scheduled with Available Pods: %d", d.Status.NumberAvailable))
	p.row(0, fmt.Sprintf("Number of Nodes Misscheduled: %d", d.Status.NumberMisscheduled))
	p.row(0, "Pods Status:", phases(pods))
	p.template(&d.Spec.Template)
}

// nameAndNamespace begins the page of any object but a pod.
func (p *page) nameAndNamespace(o metav1.Object) {
	p.row(0, "Name:", o.GetName())
	p.row(0, "Namespace:", o.GetNamespace())
}

func (p *page) labelsAndAnnotations(o metav1.Object) {
	p.list("Labels:", labels(o.GetLabels()))
	p.annotations(o.GetAnnotations())
}

func (p *page) controlledBy(o metav1.Object) {
	if by := metav1.GetControllerOf(o); by != nil {
		p.row(0, "Controlled By:", by.Kind+"/"+by.Name)
	}
}

// conditionReasons writes a workload's conditions.
func (p *page) conditionReasons(list [][3]string) {
	if len(list) == 0 {
		return
	}
	p.row(0, "Conditions:")
	p.row(1, "Type", "Status", "Reason")
	p.row(1, "----", "------", "------")
	for _, c := range list {
		p.row(1, c[0]+" ", c[1], c[2])
	}
}
