package oracle

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	kubectl "k8s.io/kubectl/pkg/describe"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/manifest/describe"
)

// TestDescribeObjects: podrun describe prints objects other than pods as kubectl describe does, with no
// events or without that section.
func TestDescribeObjects(t *testing.T) {
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "Service", "ConfigMap", "Secret", "PersistentVolumeClaim"} {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				d := draw{t, false}
				object := drawKind(d, kind)
				others, of := drawRelated(d, object)
				of.NoEvents = d.maybe()
				want := kubectlTells(t, kind, append(others, object.(runtime.Object)), !of.NoEvents)
				if diff := cmp.Diff(want, describe.Object(object, of, time.Now())); diff != "" {
					t.Fatalf("-kubectl +podrun:\n%s", diff)
				}
			})
		})
	}
}

func kubectlTells(t *rapid.T, kind string, objects []runtime.Object, events bool) string {
	client := fake.NewClientset(objects...)
	var d kubectl.ResourceDescriber
	switch kind {
	case "Deployment":
		d = withClient(&kubectl.DeploymentDescriber{}, client)
	case "StatefulSet":
		d = withClient(&kubectl.StatefulSetDescriber{}, client)
	case "CronJob":
		d = withClient(&kubectl.CronJobDescriber{}, client)
	case "ReplicaSet":
		d = &kubectl.ReplicaSetDescriber{Interface: client}
	case "DaemonSet":
		d = &kubectl.DaemonSetDescriber{Interface: client}
	case "Job":
		d = &kubectl.JobDescriber{Interface: client}
	case "Service":
		d = &kubectl.ServiceDescriber{Interface: client}
	case "ConfigMap":
		d = &kubectl.ConfigMapDescriber{Interface: client}
	case "Secret":
		d = &kubectl.SecretDescriber{Interface: client}
	case "PersistentVolumeClaim":
		d = &kubectl.PersistentVolumeClaimDescriber{Interface: client}
	}
	text, err := d.Describe("shop", "thing", kubectl.DescriberSettings{ChunkSize: 500, ShowEvents: events})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// withClient sets the field of a describer that kubectl itself sets from a configuration.
func withClient[D kubectl.ResourceDescriber](d D, client kubernetes.Interface) D {
	field := reflect.ValueOf(d).Elem().FieldByName("client")
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(client))
	return d
}

func drawKind(d draw, kind string) metav1.Object {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "thing", UID: "u-1", CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	if d.maybe() {
		meta.Labels, meta.Annotations = map[string]string{"app": "web", "tier": "front"}, map[string]string{"note": "x", "long": strings.Repeat("y", 150)}
	}
	if d.rarely() {
		meta.OwnerReferences = []metav1.OwnerReference{{Kind: "CronJob", Name: "maker", Controller: new(true)}}
	}
	chosen := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	if d.maybe() {
		chosen.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "In", Values: []string{"b", "a"}}}
	}
	n := func() *int32 { return new(int32(d.number(0, 1, 5))) }
	switch kind {
	case "Deployment":
		o := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: n(), Selector: chosen, Template: d.template(), MinReadySeconds: *n()}}
		o.Spec.Strategy.Type = appsv1.DeploymentStrategyType(d.one("RollingUpdate", "Recreate"))
		if d.maybe() {
			o.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromString("25%")), MaxSurge: new(intstr.FromInt32(1))}
		}
		o.Status = appsv1.DeploymentStatus{Replicas: *n(), UpdatedReplicas: *n(), AvailableReplicas: *n(), UnavailableReplicas: *n()}
		if d.maybe() {
			o.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Available", Status: "True", Reason: "MinimumReplicasAvailable"}, {Type: "Progressing", Status: "False"}}
		}
		return o
	case "ReplicaSet":
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: n(), Selector: chosen, Template: d.template()}, Status: appsv1.ReplicaSetStatus{Replicas: *n()}}
	case "StatefulSet":
		o := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: n(), Selector: chosen, Template: d.template(), ServiceName: d.one("", "db"), PodManagementPolicy: appsv1.PodManagementPolicyType(d.one("", "OrderedReady"))}}
		o.Spec.UpdateStrategy.Type = "RollingUpdate"
		if d.maybe() {
			o.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: n()}
		}
		if d.maybe() {
			o.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: "Retain", WhenScaled: "Delete"}
			o.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"a": "b", "c": "d"}}, Spec: d.claim()}}
		}
		o.Status.Replicas = *n()
		return o
	case "DaemonSet":
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: chosen, Template: d.template()}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: *n(), CurrentNumberScheduled: *n(), UpdatedNumberScheduled: *n(), NumberAvailable: *n(), NumberMisscheduled: *n()}}
	case "Job":
		o := &batchv1.Job{ObjectMeta: meta, Spec: d.jobSpec()}
		o.Spec.Selector = chosen
		moment := metav1.NewTime(time.Now().Add(-time.Hour))
		if d.maybe() {
			o.Status.StartTime = &moment
		}
		if d.maybe() {
			o.Status.CompletionTime = &metav1.Time{Time: moment.Add(3 * time.Minute)}
		}
		o.Status.Active, o.Status.Succeeded, o.Status.Failed = *n(), *n(), *n()
		if d.maybe() {
			o.Status.Ready = n()
		}
		o.Status.CompletedIndexes = d.one("", "0,2-4", strings.Repeat("10,", 30)+"99", strings.Repeat("10,", 16)+"99")
		return o
	case "CronJob":
		o := &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "*/5 * * * *", ConcurrencyPolicy: "Forbid", JobTemplate: batchv1.JobTemplateSpec{Spec: d.jobSpec()}}}
		if d.maybe() {
			o.Spec.Suspend, o.Spec.TimeZone, o.Spec.SuccessfulJobsHistoryLimit, o.Spec.FailedJobsHistoryLimit, o.Spec.StartingDeadlineSeconds = new(d.maybe()), new("Europe/Berlin"), n(), n(), new(int64(7))
			o.Status.LastScheduleTime = &metav1.Time{Time: time.Now().Add(-time.Hour)}
			o.Status.Active = []corev1.ObjectReference{{Name: "a"}, {Name: "b"}}
		}
		return o
	case "Service":
		return d.shownService(meta)
	case "ConfigMap":
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"b": "one line", "a": "two\nlines\n", "empty": ""}, BinaryData: map[string][]byte{"raw": {1, 2, 3}}}
	case "Secret":
		return &corev1.Secret{ObjectMeta: meta, Type: "Opaque", Data: map[string][]byte{"password": []byte("never shown"), "x": nil}}
	case "PersistentVolumeClaim":
		o := &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: d.claim()}
		o.Status.Phase, o.Spec.VolumeName = "Bound", d.one("", "disk")
		o.Status.AccessModes = []corev1.PersistentVolumeAccessMode{"ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce"}
		o.Status.Capacity = corev1.ResourceList{"storage": resource.MustParse("2Gi")}
		return o
	}
	panic("unknown kind " + kind)
}

func (d draw) template() corev1.PodTemplateSpec {
	p, _, _ := drawDescribed(d)
	t := corev1.PodTemplateSpec{Spec: p.Spec}
	t.Labels = map[string]string{"app": "web", "tier": "front"}
	if d.maybe() {
		t.Annotations = map[string]string{"note": "x", "more": "y"}
	}
	if d.rarely() {
		t.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "z", WhenUnsatisfiable: "DoNotSchedule", MaxSkew: 1, LabelSelector: &metav1.LabelSelector{MatchLabels: t.Labels}}, {TopologyKey: "a"}}
	}
	return t
}

func (d draw) jobSpec() batchv1.JobSpec {
	s := batchv1.JobSpec{Template: d.template()}
	if d.maybe() {
		s.Parallelism, s.Completions, s.Suspend, s.BackoffLimit = new(int32(2)), new(int32(3)), new(d.maybe()), new(int32(6))
		s.CompletionMode = new(batchv1.CompletionMode(d.one("Indexed", "NonIndexed")))
	}
	if d.maybe() {
		s.TTLSecondsAfterFinished, s.ActiveDeadlineSeconds = new(int32(9)), new(int64(8))
	}
	return s
}

func (d draw) claim() corev1.PersistentVolumeClaimSpec {
	s := corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}}
	if d.maybe() {
		s.StorageClassName, s.VolumeMode = new("fast"), new(corev1.PersistentVolumeFilesystem)
		s.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
	}
	return s
}

func (d draw) shownService(meta metav1.ObjectMeta) *corev1.Service {
	s := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: "NodePort", ClusterIP: "10.89.0.1", SessionAffinity: "None"}}
	if d.maybe() {
		s.Spec.Selector = map[string]string{"app": "web", "tier": "front"}
		s.Spec.IPFamilyPolicy, s.Spec.IPFamilies, s.Spec.ClusterIPs = new(corev1.IPFamilyPolicyPreferDualStack), []corev1.IPFamily{"IPv4", "IPv6"}, []string{"10.89.0.1", "fd89::1"}
		s.Spec.InternalTrafficPolicy, s.Spec.ExternalTrafficPolicy, s.Spec.TrafficDistribution = new(corev1.ServiceInternalTrafficPolicyCluster), "Cluster", new("PreferClose")
	}
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, Protocol: "TCP", TargetPort: intstr.FromString("web"), NodePort: int32(d.number(0, 30080))}, {Name: "dns", Port: 53, Protocol: "UDP", TargetPort: intstr.FromInt32(5353)}}
	if d.maybe() {
		s.Spec.Ports[0].AppProtocol = new("h2c")
	}
	return s
}

// drawRelated draws pods of an object, and the objects that lead a Service to them.
func drawRelated(d draw, object metav1.Object) ([]runtime.Object, describe.Related) {
	var objects []runtime.Object
	var of describe.Related
	for i := range rapid.IntRange(0, 5).Draw(d.T, "pods") {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("p-%d", 9-i), UID: types.UID(fmt.Sprint(i)), Labels: map[string]string{"app": "web", "tier": "a"}}}
		p.OwnerReferences = []metav1.OwnerReference{{UID: object.GetUID(), Controller: new(true)}}
		p.Status.Phase = corev1.PodPhase(d.one("Running", "Pending", "Failed", "Succeeded"))
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "thing"}}}}
		objects, of.Pods = append(objects, &p), append(of.Pods, p)
	}
	s, ok := object.(*corev1.Service)
	if !ok {
		return objects, of
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s", Labels: map[string]string{discoveryv1.LabelServiceName: "thing"}}}
	of.Endpoints = map[string][]string{}
	for i := range of.Pods {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.88.0.%d", i)}})
	}
	for _, p := range s.Spec.Ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(p.Name), Port: new(p.Port)})
		for _, e := range slice.Endpoints {
			of.Endpoints[p.Name] = append(of.Endpoints[p.Name], fmt.Sprintf("%s:%d", e.Addresses[0], p.Port))
		}
	}
	return append(objects, slice), of
}
