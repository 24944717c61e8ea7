package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	kserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// kubernetes decodes one document as an API server that is told to be strict.
func kubernetes(t testing.TB) func(data []byte) (*corev1.Pod, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := kserializer.NewSerializerWithOptions(kserializer.DefaultMetaFactory, scheme, scheme, kserializer.SerializerOptions{Yaml: true, Strict: true})
	gvk := kschema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	return func(data []byte) (*corev1.Pod, error) {
		obj, _, err := s.Decode(data, &gvk, &corev1.Pod{})
		p, _ := obj.(*corev1.Pod)
		return p, err
	}
}

// ours are the reasons for which podrun alone refuses to decode a document.
var ours = []string{
	"out of range", "characters; at most", "is larger than", "has more than",
	"another document begins", "Required value: an object has", "is not supported",
	"is given twice", "there is no object", "a map with apiVersion and kind", "not a quantity",
	"apiVersion v1, not", "document separator", "contains itself",
	"invalid YAML", // behind the end of a document, where Kubernetes does not look
}

// sameAsKubernetes: what podrun takes Kubernetes takes, and reads alike; what
// podrun refuses Kubernetes refuses, but for podrun's own reasons.
func sameAsKubernetes(t *testing.T, data []byte, kube func([]byte) (*corev1.Pod, error)) {
	t.Helper()
	docs, err := split(data)
	if err != nil || len(docs) != 1 {
		return
	}
	objects, err := Decode("f", data)
	theirs, kubeErr := kube(docs[0].data)
	if err == nil {
		if len(objects) != 1 {
			return // a List
		}
		if kubeErr != nil {
			t.Fatalf("taken, but Kubernetes says: %v\n%s", kubeErr, data)
		}
		if diff := cmp.Diff(theirs, objects[0].Pod); diff != "" {
			t.Fatalf("read differently:\n%s", diff)
		}
		return
	}
	if kubeErr != nil {
		return
	}
	for _, one := range strings.Split(err.Error(), "\n") {
		for _, why := range ours {
			if strings.Contains(one, why) {
				return
			}
		}
	}
	t.Fatalf("Kubernetes takes it, but: %v\n%s", err, data)
}

func TestStrictAsKubernetes(t *testing.T) {
	kube := kubernetes(t)
	for _, doc := range []string{
		podYAML(one("")),
		podYAML(one("env: [{name: a, value: yes}]")),
		podYAML(one("env: [{name: a, value: 'yes'}]")),
		podYAML(one("env: [{name: a, value: 2020-01-01}]")),
		podYAML(one("env: [{name: a, value: 1_000}]")),
		podYAML(one("env: [{name: a, value: 0x1f}]")),
		podYAML(one("env: [{name: a, value: ~}, null]")),
		podYAML(one("env: [{name: a, value: !!str 12}]")),
		podYAML(one("env: [{name: a, value: .5}]")),
		podYAML(one("env: {}")),
		podYAML(one("env: ''")),
		podYAML(one("tty: 1")),
		podYAML(one("tty: on")),
		podYAML(one("command: ls")),
		podYAML(one("ports: [{containerPort: '80'}]")),
		podYAML(one("ports: [{containerPort: 80.0}]")),
		podYAML(one("ports: [{containerPort: 8e1}]")),
		podYAML(one("ports: [{containerPort: 2147483648}]")),
		podYAML(one("resources: {limits: {cpu: 0.5, memory: 1e3}}")),
		podYAML(one("resources: {limits: {cpu: true}}")),
		podYAML(one("livenessProbe: {httpGet: {port: http}, periodSeconds: 5}")),
		podYAML(one("livenessProbe: {httpGet: {port: [1]}}")),
		podYAML("{containers: [], restartPolicy: Never, RestartPolicy: Never}"),
		podYAML("{containers: [], restartPolicy: Never, restartPolicy: Never}"),
		podYAML("{terminationGracePeriodSeconds: 9223372036854775807}"),
		podYAML("{terminationGracePeriodSeconds: 9223372036854775808}"),
		"apiVersion: v1\nkind: Pod\nmetadata: {labels: {1: a, b: null}, creationTimestamp: yesterday}\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {creationTimestamp: 2020-01-01T00:00:00Z, managedFields: [{fieldsV1: {'f:a': {}}}]}\n",
		"apiVersion: v1\nkind: Pod\nx: &x {name: a}\nmetadata: *x\n",
		"apiVersion: v1\nkind: Pod\nmetadata: &m {<<: {name: a}, namespace: b}\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a, <<: {name: b}}\n",
	} {
		sameAsKubernetes(t, []byte(doc), kube)
	}
}

// FuzzDecode: no input crashes, hangs or is read otherwise than by Kubernetes.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(podYAML(one("resources: {limits: {cpu: 1, memory: 1Gi}}, env: [{name: a, value: $(b)}]"))))
	f.Add([]byte("&a [*a]"))
	f.Add([]byte(`{}}"`))
	f.Add([]byte("{apiVersion: v1, kind: Pod, metadata: {labels: {? 1 : a}}}"))
	kube := kubernetes(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		if _, err := Load("f", data); err != nil && err.Error() == "" {
			t.Fatal("refused without a word")
		}
		sameAsKubernetes(t, data, kube)
	})
}
