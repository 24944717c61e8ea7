package manifest

import (
	"encoding/json"
	"reflect"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

// changeable are the fields of a kind's spec that may differ from what they were
// (ValidateStatefulSetUpdate and the like in pkg/apis/{apps,batch}/validation of
// Kubernetes); none are named where only some may not.
var changeable = map[pod.ObjectKind][]string{
	pod.KindStatefulSet: {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"},
	pod.KindJob:         {"parallelism", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished", "suspend", "podReplacementPolicy"},
}

// workloadUpdate keeps what a workload's pods have been made by.
func workloadUpdate(old, next *pod.Object) field.ErrorList {
	if !slices.Contains(pod.Workloads(), old.Kind) {
		return nil
	}
	var before, after map[string]any
	if json.Unmarshal(old.Spec, &before) != nil || json.Unmarshal(next.Spec, &after) != nil {
		return nil // damaged: it can only be replaced
	}
	var errs field.ErrorList
	spec := field.NewPath("spec")
	may, listed := changeable[old.Kind]
	names := map[string]bool{}
	for _, m := range []map[string]any{before, after} {
		for name := range m {
			names[name] = true
		}
	}
	for _, name := range sortedKeys(names) {
		same := reflect.DeepEqual(before[name], after[name])
		if old.Kind == pod.KindJob && name == "completions" && elastic(old) && elastic(next) {
			continue
		}
		if !same && (name == "selector" || listed && !slices.Contains(may, name)) {
			errs = append(errs, field.Invalid(spec.Child(name), field.OmitValueType{}, "field is immutable"))
		}
	}
	return errs
}

func sortedKeys(m map[string]bool) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// elastic says whether a Job's completions may follow its parallelism: those of an
// Indexed one that are the same number (Kubernetes' elastic indexed Jobs).
func elastic(o *pod.Object) bool {
	var s batchv1.JobSpec
	return json.Unmarshal(o.Spec, &s) == nil && indexed(&s) && s.Completions != nil && *s.Completions == *s.Parallelism
}
