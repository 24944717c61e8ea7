package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPage(t *testing.T) {
	got, err := Page("Deployment", []string{"spec", "strategy"}, false)
	if err != nil {
		t.Fatal(err)
	}
	const want = `GROUP:      apps
KIND:       Deployment
VERSION:    v1

FIELD: strategy <DeploymentStrategy>

DESCRIPTION:
    The deployment strategy to use to replace existing pods with new ones.
    DeploymentStrategy describes how to replace existing pods with new ones.

PODRUN:
    supported

FIELDS:
  rollingUpdate	<RollingUpdateDeployment>
    Rolling update config params. Present only if DeploymentStrategyType =
    RollingUpdate.

  type	<string>
    Type of deployment. Can be "Recreate" or "RollingUpdate". Default is
    RollingUpdate.

`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestPages checks lines of pages: types, required fields, and podrun's support.
func TestPages(t *testing.T) {
	for _, tt := range []struct {
		kind, path string
		recursive  bool
		want       []string
	}{
		{"Pod", "", false, []string{"KIND:       Pod\nVERSION:    v1\n\nDESCRIPTION:\n    Pod is a collection of containers", "  apiVersion\t<string>\n", "  spec\t<PodSpec>\n", "  status\t<PodStatus> (accepted by podrun)\n"}},
		{"Pod", "spec.containers", false, []string{"FIELD: containers <[]Container> -required-\n", "A single application container", "  name\t<string> -required-\n", "  env\t<[]EnvVar>\n"}},
		{"Pod", "spec.containers.livenessProbe.httpGet.port", false, []string{"FIELD: port <IntOrString> -required-\n", "PODRUN:\n    supported: a number, or the name"}},
		{"Pod", "spec.containers.resources.limits", false, []string{"FIELD: limits <map[string]Quantity>\n"}},
		{"Pod", "spec.volumes.gitRepo.repository", false, []string{"PODRUN:\n    refused: "}},
		{"Pod", "spec.os.name", false, []string{"PODRUN:\n    supported: only `linux`\n"}},
		{"Pod", "spec.nodeSelector", false, []string{"PODRUN:\n    accepted: scheduling: there is one machine\n"}},
		{"Pod", "metadata.creationTimestamp", false, []string{"FIELD: creationTimestamp <string>\n"}},
		{"Secret", "data", false, []string{"FIELD: data <map[string]string>\n"}},
		{"CronJob", "spec.jobTemplate.spec.template.spec.restartPolicy", false, []string{"GROUP:      batch\n", "PODRUN:\n    supported: default: Always\n"}},
		{"StatefulSet", "", true, []string{"  spec\t<StatefulSetSpec>\n", "    volumeClaimTemplates\t<[]PersistentVolumeClaim>\n      apiVersion\t<string>\n", "          gitRepo\t<GitRepoVolumeSource> (refused by podrun)\n            directory\t<string>\n"}},
	} {
		var path []string
		if tt.path != "" {
			path = strings.Split(tt.path, ".")
		}
		got, err := Page(tt.kind, path, tt.recursive)
		if err != nil {
			t.Errorf("%s %s: %v", tt.kind, tt.path, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s %s: no %q in\n%.3000s", tt.kind, tt.path, want, got)
			}
		}
	}
	if _, err := Page("Pod", []string{"spec", "container"}, false); err == nil || err.Error() != `field "container" does not exist` {
		t.Errorf("unknown field: %v", err)
	}
}

// TestEveryFieldIsExplained checks that each field of each kind has a text, unless the API has none.
func TestEveryFieldIsExplained(t *testing.T) {
	for _, kind := range []string{"Pod", "ConfigMap", "Secret", "PersistentVolumeClaim", "Service", "Namespace", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"} {
		got, err := Page(kind, nil, false)
		if err != nil || strings.Contains(got, "<no description>") {
			t.Errorf("%s: %v\n%s", kind, err, got)
		}
	}
}
