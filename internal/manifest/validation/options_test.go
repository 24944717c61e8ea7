package validation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// TestOptions has annotations of a pod, and the field that is refused.
func TestOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		user        *int64
		want        string // in the error; "": none
	}{
		"all":               {map[string]string{"podrun.dev/ulimits": "nofile=1024", "groups.podrun.dev/app": "video", "user.podrun.dev/app": "nobody"}, nil, ""},
		"no such container": {map[string]string{"groups.podrun.dev/other": "video"}, nil, "groups.podrun.dev/other]: Invalid value: \"other\": container not found"},
		"bad value":         {map[string]string{"ulimits.podrun.dev/app": "files=3"}, nil, "must be a list as in nofile=1024:4096"},
		"two users":         {map[string]string{"podrun.dev/user": "nobody"}, ptr.To[int64](4), "cannot be combined with runAsUser"},
		"labels":            {map[string]string{"podrun.dev/labels": "[]"}, nil, "must be a JSON object of texts"},
		"host names":        {map[string]string{"podrun.dev/host-names": "gateway"}, nil, "requires podrun.dev/host-loopback"},
		"host names set":    {map[string]string{"podrun.dev/host-names": "gateway", "podrun.dev/host-loopback": "true"}, nil, ""},
		"name servers":      {map[string]string{"podrun.dev/dns-servers": "127.0.0.1"}, nil, "none of them a loopback address"},
		"no resolver":       {map[string]string{"podrun.dev/dns-servers": "1.1.1.1", "podrun.dev/network": "host"}, nil, "requires a network of the pod's own"},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: tc.user}
		path := field.NewPath("metadata", "annotations")
		errs := append(validateOptions(p, path), validateAnnotations(p.Annotations, path)...)
		got := append(errs, validateNames(p, path)...).ToAggregate()
		if (got == nil) != (tc.want == "") || got != nil && !strings.Contains(got.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, got, tc.want)
		}
	}
}
