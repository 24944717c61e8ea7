package podutil

import (
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
)

// ParseIndexes parses indexes in Kubernetes' form, 0,2-4, each less than completions (validateIndexesFormat
// in pkg/apis/batch/validation).
func ParseIndexes(text string, completions int) (list []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		limits := strings.Split(part, "-")
		if len(limits) > 2 {
			return nil, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", part)
		}
		var ends []int
		for _, limit := range limits {
			n, err := strconv.Atoi(limit)
			if err != nil {
				return nil, fmt.Errorf("cannot convert string to integer for index: %q", limit)
			}
			if n >= completions {
				return nil, fmt.Errorf("too large index: %q", limit)
			}
			ends = append(ends, n)
		}
		first, last := ends[0], ends[len(ends)-1]
		if len(ends) == 2 && first >= last {
			return nil, fmt.Errorf("non-increasing order, previous: %d, current: %d", first, last)
		}
		if n := len(list); n > 0 && list[n-1] >= first {
			return nil, fmt.Errorf("non-increasing order, previous: %d, current: %d", list[n-1], first)
		}
		for i := first; i <= last; i++ {
			list = append(list, i)
		}
	}
	return list, nil
}

// IsIndexedJob reports whether each pod of a Job has an index.
func IsIndexedJob(s *batchv1.JobSpec) bool {
	return s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion
}

// StatefulSetClaimName returns the name of the claim of one template for the pod with one ordinal.
func StatefulSetClaimName(template, set string, ordinal int) string {
	return template + "-" + set + "-" + strconv.Itoa(ordinal)
}
