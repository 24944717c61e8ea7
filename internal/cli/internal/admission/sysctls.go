package admission

import (
	"slices"

	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/support"
	"github.com/podrun/podrun/internal/manifest/validation"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// CheckSysctls refuses pods and templates with sysctls that are neither safe nor permitted by
// --allow-unsafe-sysctl. A kubelet does the same when it admits a pod, so a pod that exists is not checked
// again.
func CheckSysctls(docs resource.Documents, patterns []string) error {
	permitted, err := validation.ParseUnsafeSysctls(patterns)
	if err != nil {
		return report.New(report.Usage, "", "--allow-unsafe-sysctl: %w", err)
	}
	bad := &manifest.Errors{}
	check := func(list []manifest.Object, path func(i int) string) {
		for i := range list {
			unsafe := permitted
			if p := list[i].Pod; p.Annotations[podutil.AnnotationNetSysctls] == "true" && !podutil.IsHostNetwork(p) {
				unsafe = append(slices.Clone(permitted), "net.*")
			}
			for _, e := range unsafe.Check(list[i].Pod) {
				list[i].Fail(bad, path(i)+e.Field, e.ErrorBody())
			}
		}
	}
	check(docs.Pods, func(int) string { return "" })
	check(resource.SamplePods(docs.Workloads), func(i int) string {
		return support.TemplatePath(pod.ObjectKind(docs.Workloads[i].Kind)) + "."
	})
	if err := bad.Err(); err != nil {
		return report.New(report.Usage, "--allow-unsafe-sysctl NAME permits one that belongs to the pod's own namespaces", "the manifest sets unsafe sysctls\n%w", err)
	}
	return nil
}
