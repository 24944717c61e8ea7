package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podrun/podrun/internal/cdi"
	"github.com/podrun/podrun/internal/pod"
)

// TestDevicesBecomeMounts checks that CDI devices become mounts of host files, environment variables that
// override, groups and hooks; a mount of the container at the same path stays.
func TestDevicesBecomeMounts(t *testing.T) {
	p := &corev1.Pod{}
	p.Annotations = map[string]string{"cdi.k8s.io/a": "v.example/c=every"}
	p.Spec.InitContainers = []corev1.Container{{Name: "i"}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"v.example/c=own": resource.MustParse("1")}}}}
	plan := &pod.Plan{Name: "p", InitContainers: []pod.Container{{Name: "i"}}, Containers: []pod.Container{{Name: "c",
		Mounts: []pod.Mount{{Volume: "v", Path: "/data/deep"}}, SupplementalGroups: []uint32{5}}}}
	var asked []string
	err := addDevices(p, plan, []string{"/etc/cdi"}, func(_, names []string) (*cdi.Edits, error) {
		asked = append(asked, strings.Join(names, " "))
		return &cdi.Edits{
			Env: []string{"A=b=c"}, Groups: []uint32{0, 5, 44},
			Devices: []cdi.Device{{Host: "/dev/zero", Path: "/dev/x"}, {Host: "/dev/sda", Path: "/dev/sda", Block: true}},
			Mounts:  []cdi.Mount{{Host: "/usr/lib/x/", Path: "/lib/x", Options: []string{"ro", "nosuid", "rbind"}}, {Host: "/h", Path: "/data/deep"}},
			Hooks:   []cdi.Hook{{Name: "createContainer", Path: "/bin/true"}},
		}, nil
	})
	if err != nil || strings.Join(asked, ", ") != "v.example/c=every, v.example/c=every v.example/c=own" {
		t.Fatalf("%v, asked for %q", err, asked)
	}
	c := plan.Containers[0]
	var mounts []string
	for _, m := range c.Mounts {
		mounts = append(mounts, m.Volume+" "+m.Path)
		if m.Path == "/lib/x" && (!m.ReadOnly || len(m.Options) != 1) {
			t.Errorf("options: %+v", m)
		}
	}
	if got := strings.Join(mounts, ", "); got != "v /data/deep, cdi:/dev/zero /dev/x, cdi:/dev/sda /dev/sda, cdi:/usr/lib/x/ /lib/x" {
		t.Errorf("mounts: %s", got)
	}
	if len(plan.Volumes) != 4 || plan.Volumes[0].PathType != "CharDevice" || plan.Volumes[1].PathType != "BlockDevice" || plan.Volumes[2].Path != "/usr/lib/x" {
		t.Errorf("volumes: %+v", plan.Volumes)
	}
	if len(c.SupplementalGroups) != 2 || len(c.Hooks) != 1 || c.Vars[0].Name != "A" || *c.Vars[0].From.Text != "b=c" {
		t.Errorf("%+v", c)
	}
}
