package decode

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

	"github.com/podrun/podrun/internal/manifest/manifesttest"
)

// kubernetes decodes one document as an API server with strict field validation.
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

// ours are the reasons for which only podrun refuses a document.
var ours = []string{
	"out of range", "characters; at most", "is larger than", "has more than",
	"another document begins", "Required value: an object has", "is not supported",
	"is given twice", "contains no object", "a map with apiVersion and kind", "not a quantity",
	"apiVersion v1, not", "document separator", "contains itself",
	"invalid YAML", // after the end of a document, where Kubernetes does not look
}

// sameAsKubernetes checks that Kubernetes accepts every document that podrun accepts, with the same result,
// and refuses what podrun refuses, except for podrun's own reasons.
func sameAsKubernetes(t *testing.T, data []byte, kube func([]byte) (*corev1.Pod, error)) {
	t.Helper()
	docs, bad := split("f", data)
	if bad != nil || len(docs) != 1 {
		return
	}
	objects, errs := Parse("f", data)
	err := errs.Err()
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
	for _, line := range strings.Split(err.Error(), "\n") {
		for _, reason := range ours {
			if strings.Contains(line, reason) {
				return
			}
		}
	}
	t.Fatalf("Kubernetes takes it, but: %v\n%s", err, data)
}

func TestStrictAsKubernetes(t *testing.T) {
	kube := kubernetes(t)
	for _, doc := range []string{
		manifesttest.PodYAML(manifesttest.One("")),
		manifesttest.PodYAML(manifesttest.One("env: [{name: a, value: yes}]")),
		manifesttest.PodYAML(manifesttest.One("env: [{name: a, value: 'yes'}]")),
		manifesttest.PodYAML(manifesttest.One("env: [{name: a, value: 2020-01-01}]")),
		manifesttest.PodYAML(manifesttest.One("env: [{name: a, value: 1_000}]")),
		manifesttest.PodYAML(manifesttest.One("env: [{name: a, value: 0x1f}]")),
		manifesttest.PodYAML(manifesttest.One("env: [{name: a, value: ~}, null]")),
		manifesttest.PodYAML(manifesttest.One("env: [{name: a, value: !!str 12}]")),
		manifesttest.PodYAML(manifesttest.One("env: [{name: a, value: .5}]")),
		manifesttest.PodYAML(manifesttest.One("env: {}")),
		manifesttest.PodYAML(manifesttest.One("env: ''")),
		manifesttest.PodYAML(manifesttest.One("tty: 1")),
		manifesttest.PodYAML(manifesttest.One("tty: on")),
		manifesttest.PodYAML(manifesttest.One("command: ls")),
		manifesttest.PodYAML(manifesttest.One("ports: [{containerPort: '80'}]")),
		manifesttest.PodYAML(manifesttest.One("ports: [{containerPort: 80.0}]")),
		manifesttest.PodYAML(manifesttest.One("ports: [{containerPort: 8e1}]")),
		manifesttest.PodYAML(manifesttest.One("ports: [{containerPort: 2147483648}]")),
		manifesttest.PodYAML(manifesttest.One("resources: {limits: {cpu: 0.5, memory: 1e3}}")),
		manifesttest.PodYAML(manifesttest.One("resources: {limits: {cpu: true}}")),
		manifesttest.PodYAML(manifesttest.One("livenessProbe: {httpGet: {port: http}, periodSeconds: 5}")),
		manifesttest.PodYAML(manifesttest.One("livenessProbe: {httpGet: {port: [1]}}")),
		manifesttest.PodYAML("{containers: [], restartPolicy: Never, RestartPolicy: Never}"),
		manifesttest.PodYAML("{containers: [], restartPolicy: Never, restartPolicy: Never}"),
		manifesttest.PodYAML("{terminationGracePeriodSeconds: 9223372036854775807}"),
		manifesttest.PodYAML("{terminationGracePeriodSeconds: 9223372036854775808}"),
		"apiVersion: v1\nkind: Pod\nmetadata: {labels: {1: a, b: null}, creationTimestamp: yesterday}\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {creationTimestamp: 2020-01-01T00:00:00Z, managedFields: [{fieldsV1: {'f:a': {}}}]}\n",
		"apiVersion: v1\nkind: Pod\nx: &x {name: a}\nmetadata: *x\n",
		"apiVersion: v1\nkind: Pod\nmetadata: &m {<<: {name: a}, namespace: b}\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a, <<: {name: b}}\n",
	} {
		sameAsKubernetes(t, []byte(doc), kube)
	}
}

// FuzzParse: no input crashes, hangs or is read differently than by Kubernetes.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../testdata/bad/*.yaml")
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
	f.Add([]byte(manifesttest.PodYAML(manifesttest.One("resources: {limits: {cpu: 1, memory: 1Gi}}, env: [{name: a, value: $(b)}]"))))
	f.Add([]byte(""))
	f.Add([]byte("&a [*a]"))
	f.Add([]byte(`{}}"`))
	f.Add([]byte("{apiVersion: v1, kind: Pod, metadata: {labels: {? 1 : a}}}"))
	kube := kubernetes(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		sameAsKubernetes(t, data, kube)
	})
}
