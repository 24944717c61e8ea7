package oracle

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/core"
	kcorev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/manifest/defaulting"
	manifestvalidation "github.com/podrun/podrun/internal/manifest/validation"
)

// TestValidateObjects: the mistakes of stored objects are the API server's, in its words.
func TestValidateObjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t, true}
		name := d.often("web", "", "A", "../x", "a.b")
		c := &corev1.ConfigMap{Data: d.data(), BinaryData: map[string][]byte{}}
		c.Name = name
		for key, value := range d.data() {
			c.BinaryData[key] = []byte(value)
		}
		defaulting.SetObjectDefaults(c)
		var ic core.ConfigMap
		must(t, kcorev1.Convert_v1_ConfigMap_To_core_ConfigMap(c.DeepCopy(), &ic, nil))
		same(t, words(validation.ValidateConfigMap(&ic)), words(manifestvalidation.ValidateObject(c)))

		s := &corev1.Secret{StringData: d.data(), Type: corev1.SecretType(d.one("", "Opaque", "kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson",
			"kubernetes.io/basic-auth", "kubernetes.io/ssh-auth", "kubernetes.io/tls", "kubernetes.io/service-account-token", "mine"))}
		s.Name = name
		defaulting.SetObjectDefaults(s)
		var is core.Secret
		must(t, kcorev1.Convert_v1_Secret_To_core_Secret(s.DeepCopy(), &is, nil))
		same(t, words(validation.ValidateSecret(&is)), words(manifestvalidation.ValidateObject(s)))
	})
}

// TestValidateClaims does the same for PersistentVolumeClaims.
func TestValidateClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t, true}
		c := &corev1.PersistentVolumeClaim{}
		c.Name = d.often("web", "", "A")
		for range rapid.IntRange(0, 2).Draw(t, "modes") {
			c.Spec.AccessModes = append(c.Spec.AccessModes, corev1.PersistentVolumeAccessMode(d.one("ReadWriteOnce", "ReadWriteOncePod", "Mine")))
		}
		if d.maybe() {
			c.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse(d.often("1Gi", "0", "-1"))}
		}
		if d.maybe() {
			c.Spec.StorageClassName = new(d.often("fast", "", "F!"))
		}
		if d.maybe() {
			c.Spec.VolumeMode = new(corev1.PersistentVolumeMode(d.often("Filesystem", "Block", "Tape")))
		}
		defaulting.SetObjectDefaults(c)
		kcorev1.SetObjectDefaults_PersistentVolumeClaim(c)
		var ic core.PersistentVolumeClaim
		must(t, kcorev1.Convert_v1_PersistentVolumeClaim_To_core_PersistentVolumeClaim(c.DeepCopy(), &ic, nil))
		same(t, words(validation.ValidatePersistentVolumeClaim(&ic, validation.PersistentVolumeClaimSpecValidationOptions{})), words(manifestvalidation.ValidateObject(c)))
	})
}

// TestDefaultServices: a stored Service has the API server's defaults, and is refused if the API server
// refuses it.
func TestDefaultServices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw{t, true}.service()
		theirs := s.DeepCopy()
		theirs.Namespace = "default"
		kcorev1.SetObjectDefaults_Service(theirs)
		defaulting.SetObjectDefaults(s)
		if len(theirs.Spec.ClusterIPs) == 0 && theirs.Spec.ClusterIP != "" {
			theirs.Spec.ClusterIPs = []string{theirs.Spec.ClusterIP} // its strategy for creation
		}
		ours := s.DeepCopy()
		ours.Spec.InternalTrafficPolicy, ours.Spec.ExternalTrafficPolicy = theirs.Spec.InternalTrafficPolicy, theirs.Spec.ExternalTrafficPolicy
		ours.Spec.AllocateLoadBalancerNodePorts = theirs.Spec.AllocateLoadBalancerNodePorts // it has no meaning here
		if diff := cmp.Diff(theirs, ours, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		var is core.Service
		must(t, kcorev1.Convert_v1_Service_To_core_Service(theirs.DeepCopy(), &is, nil))
		refused := len(validation.ValidateServiceCreate(&is)) > 0
		if errs := manifestvalidation.ValidateObject(s); refused != (len(errs) > 0) {
			t.Fatalf("we say %v, the API server %v of %+v", errs, validation.ValidateServiceCreate(&is), s.Spec)
		}
	})
}

func (d draw) service() *corev1.Service {
	s := &corev1.Service{}
	s.Name = d.often("web", "", "A", "1a", "a.b")
	s.Spec.Type = corev1.ServiceType(d.often("", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "Mine"))
	s.Spec.ClusterIP = d.often("", "None", "10.0.0.1", "fd00::1", "x")
	if s.Spec.Type == "ExternalName" {
		s.Spec.ExternalName = d.often("db.example.com", "", "a b", "example.com.")
		s.Spec.ClusterIP = d.often("", "10.0.0.1")
	}
	if d.rarely() {
		s.Spec.Selector = map[string]string{d.one("app", "a b"): d.one("x", "-")}
	}
	s.Spec.SessionAffinity = corev1.ServiceAffinity(d.often("", "ClientIP", "None", "Mine"))
	if s.Spec.SessionAffinity == "ClientIP" && d.maybe() {
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(d.number(1, 0, 86400, 86401)))}}
	}
	for i := range rapid.IntRange(0, 2).Draw(d.T, "ports") {
		p := corev1.ServicePort{Name: d.often(string(rune('a'+i)), "", "same", "A"), Port: int32(80 + i), Protocol: corev1.Protocol(d.often("", "TCP", "UDP", "tcp"))}
		if d.rarely() {
			p.Port = int32(d.number(80, 0, 65536))
		}
		if d.maybe() {
			p.TargetPort = intstr.FromString(d.often("web", "", "80", "A"))
		} else {
			p.TargetPort = intstr.FromInt32(int32(d.number(0, 8080, 65536)))
		}
		if d.rarely() {
			p.NodePort = int32(d.number(30000, 0))
		}
		s.Spec.Ports = append(s.Spec.Ports, p)
	}
	return s
}

func (d draw) data() map[string]string {
	data := map[string]string{}
	for range rapid.IntRange(0, 2).Draw(d.T, "keys") {
		data[d.one("a", "b", "..", "a/b", "", "x y", ".dockerconfigjson", ".dockercfg", "username", "password", "ssh-privatekey", "tls.crt", "tls.key")] = d.one("x", "", "{}")
	}
	return data
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// untold matches the reason of a wrong value, in which the value may occur.
var untold = regexp.MustCompile(`redacted>": .*`)

func same(t *rapid.T, theirs, ours []string) {
	for _, list := range [][]string{theirs, ours} {
		for i := range list {
			list[i] = untold.ReplaceAllString(list[i], "redacted")
		}
	}
	if diff := cmp.Diff(theirs, ours, cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
}
