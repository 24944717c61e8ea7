package manifest

import (
	"errors"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What a container's logs may take on disk, as the kubelet's containerLogMaxSize and
// containerLogMaxFiles: the size of a file, 10Mi without it, and how many there are,
// 5 without it.
const (
	AnnotationLogMaxSize  = "podrun.dev/log-max-size"
	AnnotationLogMaxFiles = "podrun.dev/log-max-files"
)

// minLogSize: with smaller files, most of what is written would be their names.
const minLogSize = 4 << 10

// maxLogFiles: more of them slow down every look at the directory.
const maxLogFiles = 1000

// ParseLogMaxSize reads a quantity of bytes.
func ParseLogMaxSize(text string) (int64, error) {
	bad := errors.New("must be a quantity of bytes, at least 4Ki, such as 10Mi")
	if quantityText(text) != "" {
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

// ParseLogMaxFiles reads a number of files.
func ParseLogMaxFiles(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || n > maxLogFiles {
		return 0, errors.New("must be a number from 2 to 1000")
	}
	return n, nil
}

func validateLogs(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if text, ok := annotations[AnnotationLogMaxSize]; ok {
		if _, err := ParseLogMaxSize(text); err != nil {
			errs = append(errs, field.Invalid(path.Key(AnnotationLogMaxSize), text, err.Error()))
		}
	}
	if text, ok := annotations[AnnotationLogMaxFiles]; ok {
		if _, err := ParseLogMaxFiles(text); err != nil {
			errs = append(errs, field.Invalid(path.Key(AnnotationLogMaxFiles), text, err.Error()))
		}
	}
	return errs
}

// logLimits are those of a valid Pod; 0 is the default.
func logLimits(p *corev1.Pod) (size int64, files int) {
	if text, ok := p.Annotations[AnnotationLogMaxSize]; ok {
		size, _ = ParseLogMaxSize(text)
	}
	if text, ok := p.Annotations[AnnotationLogMaxFiles]; ok {
		files, _ = ParseLogMaxFiles(text)
	}
	return size, files
}

// Selector chooses pods by their labels, in kubectl's words: "app=web,tier!=db",
// "env in (a,b)", "!old".
type Selector struct{ selector labels.Selector }

// ParseSelector reads a selector. The error says what is wrong with it.
func ParseSelector(text string) (Selector, error) {
	s, err := labels.Parse(text)
	return Selector{s}, err
}

// Matches says whether a pod has labels that are asked for.
func (s Selector) Matches(pod map[string]string) bool { return s.selector.Matches(labels.Set(pod)) }
