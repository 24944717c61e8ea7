package podutil

import (
	"errors"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

// ParseLogMaxSize parses a quantity of bytes.
func ParseLogMaxSize(text string) (int64, error) {
	bad := errors.New("must be a quantity of bytes, at least 4Ki, such as 10Mi")
	if apiutil.QuantityProblem(text) != "" {
		return 0, bad
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, bad
	}
	n, exact := q.AsInt64()
	if !exact || n < minLogSize {
		return 0, bad
	}
	return n, nil
}

// ParseLogMaxFiles parses a number of files.
func ParseLogMaxFiles(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || n > maxLogFiles {
		return 0, errors.New("must be a number from 2 to 1000")
	}
	return n, nil
}

// minLogSize is the minimum size of a log file. With smaller files, their names would be most of what is
// written.
const minLogSize = 4 << 10

// maxLogFiles is the maximum number of log files. More of them make every listing of the directory slow.
const maxLogFiles = 1000
