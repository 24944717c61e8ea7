package validation

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// mutableFields are the fields of a kind's spec that may change (ValidateStatefulSetUpdate and the like in
// pkg/apis/{apps,batch}/validation of Kubernetes). For other kinds only the selector is immutable, for a
// ReplicationController nothing.
var mutableFields = map[pod.ObjectKind][]string{
	pod.KindStatefulSet: {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"},
	pod.KindJob:         {"parallelism", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished", "suspend", "podReplacementPolicy"},
}

// workloadUpdate refuses changes of the fields by which a workload's existing pods were made.
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
	may, listed := mutableFields[old.Kind]
	names := sets.KeySet(before).Union(sets.KeySet(after))
	for _, name := range sets.List(names) {
		if old.Kind == pod.KindJob && name == "completions" && isElasticJob(old) && isElasticJob(next) {
			continue
		}
		fixed := name == "selector" && old.Kind != pod.KindReplication || listed && !slices.Contains(may, name)
		if fixed && !reflect.DeepEqual(before[name], after[name]) {
			errs = append(errs, field.Invalid(spec.Child(name), field.OmitValueType{}, "field is immutable"))
		}
	}
	return errs
}

// isElasticJob reports whether a Job's completions may change together with its parallelism: as for an
// Indexed one with equal numbers (Kubernetes' elastic indexed Jobs).
func isElasticJob(o *pod.Object) bool {
	var s batchv1.JobSpec
	return json.Unmarshal(o.Spec, &s) == nil && podutil.IsIndexedJob(&s) && s.Completions != nil && *s.Completions == *s.Parallelism
}

// sameData compares two maps of text or bytes; nil equals an empty map.
func sameData[V string | []byte](a, b map[string]V) bool {
	return maps.EqualFunc(a, b, func(x, y V) bool { return string(x) == string(y) })
}

// ValidateObjectUpdate checks a change of an object as the API server checks an update
// (ValidateConfigMapUpdate and the like in pkg/apis/core/validation of Kubernetes).
func ValidateObjectUpdate(old, next *pod.Object) field.ErrorList {
	var errs field.ErrorList
	switch {
	case old.ConfigMap != nil && next.ConfigMap != nil && old.ConfigMap.Immutable:
		a, b := old.ConfigMap, next.ConfigMap
		errs = fixedFields(setField{"immutable", !b.Immutable}, setField{"data", !sameData(a.Data, b.Data)}, setField{"binaryData", !sameData(a.BinaryData, b.BinaryData)})
	case old.Secret != nil && next.Secret != nil:
		a, b := old.Secret, next.Secret
		if a.Type != b.Type {
			errs = append(errs, field.Invalid(field.NewPath("type"), b.Type, "field is immutable"))
		}
		if a.Immutable {
			errs = append(errs, fixedFields(setField{"immutable", !b.Immutable}, setField{"data", !sameData(a.Data, b.Data)})...)
		}
	case old.Claim != nil && next.Claim != nil:
		errs = claimUpdate(old.Claim, next.Claim)
	case old.PersistentVolume != nil && next.PersistentVolume != nil:
		errs = persistentVolumeUpdate(old.PersistentVolume, next.PersistentVolume)
	case old.Service != nil && next.Service != nil:
		errs = serviceUpdate(old.Service, next.Service)
	case old.Kind == next.Kind && old.Secret == nil:
		errs = workloadUpdate(old, next)
	}
	return errs
}

// fixedFields refuses the changed fields of an immutable object.
func fixedFields(changed ...setField) field.ErrorList {
	return forbidFields(nil, "field is immutable when `immutable` is set", changed...)
}

// claimUpdate allows a claim to grow, and an unbound one to name its volume, and no other change.
func claimUpdate(old, next *pod.Claim) field.ErrorList {
	spec := field.NewPath("spec")
	if !slices.Equal(old.AccessModes, next.AccessModes) || old.Class != nil && !reflect.DeepEqual(old.Class, next.Class) || !reflect.DeepEqual(old.Selector, next.Selector) ||
		next.VolumeName != "" && old.VolumeName != "" && next.VolumeName != old.VolumeName {
		return field.ErrorList{field.Forbidden(spec, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims")}
	}
	if next.Request < old.Request {
		return field.ErrorList{field.Forbidden(spec.Child("resources", "requests", "storage"), "field can not be less than status.capacity")}
	}
	return nil
}

// serviceUpdate refuses changes of addresses that pods may use.
func serviceUpdate(old, next *pod.Service) field.ErrorList {
	if !old.Headless() && !next.Headless() && len(old.Families) > 0 && len(next.Families) > 0 && old.Families[0] != next.Families[0] {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "ipFamilies").Index(0), next.Families, "may not change once set")}
	}
	if next.Type == pod.ServiceExternalName || old.Type == pod.ServiceExternalName || len(old.ClusterIPs) == 0 || len(next.ClusterIPs) == 0 {
		return nil
	}
	if old.ClusterIPs[0] != next.ClusterIPs[0] {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs").Index(0), next.ClusterIPs, "may not change once set")}
	}
	return nil
}
