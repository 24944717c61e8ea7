package workload

import (
	"strconv"
	"strings"
)

// failureRule parses a rule of a scenario: ACTION:CODE,CODE or ACTION:CONTAINER=CODE, a "!" before the
// codes for all others, or ACTION:CONDITION.
func failureRule(text string) FailureRule {
	action, of, _ := strings.Cut(text, ":")
	r := FailureRule{Action: FailureAction(action)}
	if container, codes, ok := strings.Cut(of, "="); ok {
		r.Container, of = container, codes
	}
	of, r.NotIn = strings.CutPrefix(of, "!")
	if r.Codes = numbers(of); r.Codes == nil {
		r.Conditions = []FailureCondition{{of, "True"}}
	}
	return r
}

// successRule parses INDEX,INDEX:COUNT; either part may be missing.
func successRule(text string) SuccessRule {
	indexes, count, _ := strings.Cut(text, ":")
	r := SuccessRule{Indexes: numbers(indexes), Count: -1}
	if n, err := strconv.Atoi(count); err == nil {
		r.Count = n
	}
	return r
}

func numbers(text string) (list []int) {
	for word := range strings.SplitSeq(text, ",") {
		if n, err := strconv.Atoi(word); err == nil {
			list = append(list, n)
		}
	}
	return list
}
