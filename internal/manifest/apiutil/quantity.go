package apiutil

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// QuantityProblem returns the reason why a text is no quantity, or "".
func QuantityProblem(text string) string {
	if len(text) > maxQuantity {
		return fmt.Sprintf("a quantity of %d characters; at most %d are read", len(text), maxQuantity)
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && i+1 < len(text) {
		if exp, err := strconv.Atoi(text[i+1:]); err == nil && (exp > maxExponent || exp < -maxExponent) {
			return fmt.Sprintf("%q is out of range: the exponent may be at most %d", text, maxExponent)
		}
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Sprintf("%q is not a quantity: %v", text, err)
	}
	// The parser replaces values that are too large by its maximum, 2^63-1.
	if q.CmpInt64(math.MaxInt64) >= 0 || q.CmpInt64(-math.MaxInt64) <= 0 {
		return fmt.Sprintf("%q is out of range: it must be less than 2^63-1", text)
	}
	return ""
}

const (
	// maxQuantity is the maximum length of a quantity's text. The cost of parsing grows with its square:
	// a million digits take seconds.
	maxQuantity = 64

	// maxExponent bounds 1e…: 10^18 is the last power that fits 63 bits.
	maxExponent = 18
)
