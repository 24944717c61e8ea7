package podmetrics

import (
	"bytes"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-state-metrics/v2/pkg/metric"
)

// family is a metric family of objects: a name with its type and text.
type family[T any] struct {
	name string
	kind metric.Type
	help string
	of   func(T) []*metric.Metric // the series of an object, without the labels that all its families have
}

// writeFamilies writes families in the Prometheus text format. A family without series is left out: podrun
// knows nothing about it. labels returns the labels that all series of an object have.
func writeFamilies[T any](out *bytes.Buffer, objects []T, families []family[T], labels func(T) []string) {
	for _, f := range families {
		all := metric.Family{Name: f.name, Type: f.kind}
		for _, o := range objects {
			common := one(0, labels(o)...)[0]
			for _, m := range f.of(o) {
				m.LabelKeys = append(common.LabelKeys[:len(common.LabelKeys):len(common.LabelKeys)], m.LabelKeys...)
				m.LabelValues = append(common.LabelValues[:len(common.LabelValues):len(common.LabelValues)], m.LabelValues...)
				all.Metrics = append(all.Metrics, m)
			}
		}
		if len(all.Metrics) > 0 {
			fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
			out.Write(all.ByteSlice())
		}
	}
}

// one returns a single series; labels are keys, each followed by its value.
func one(value float64, labels ...string) []*metric.Metric {
	return labelled([]*metric.Metric{{Value: value}}, labels...)
}

// labelled adds labels to series: keys, each followed by its value.
func labelled(series []*metric.Metric, labels ...string) []*metric.Metric {
	for _, m := range series {
		for i := 0; i < len(labels); i += 2 {
			m.LabelKeys, m.LabelValues = append(m.LabelKeys, labels[i]), append(m.LabelValues, labels[i+1])
		}
	}
	return series
}

// number returns a single series, or none if the value is not known.
func number[N int32 | int64](n *N) []*metric.Metric {
	if n == nil {
		return nil
	}
	return one(float64(*n))
}

// seconds returns a duration as a single series, or none if it is not known.
func seconds(d *time.Duration) []*metric.Metric {
	if d == nil {
		return nil
	}
	return one(d.Seconds())
}

// timestamp returns a time as a single series, or none if it is not known.
func timestamp(t *metav1.Time) []*metric.Metric {
	if t == nil || t.IsZero() {
		return nil
	}
	return one(float64(t.Unix()))
}

// oneIf returns 1 or 0.
func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
