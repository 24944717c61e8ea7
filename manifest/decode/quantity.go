package decode

import (
	"encoding/json"
	"fmt"

	"github.com/podrun/podrun/manifest/apiutil"
)

// quantityProblem returns the reason why a JSON value is no quantity that podrun can use, or "". Negative
// ones are left to validation, which has the API server's words for them.
func quantityProblem(v any) string {
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	default:
		return fmt.Sprintf("is %s, not a quantity", describeValue(v))
	}
	return apiutil.QuantityProblem(text)
}
