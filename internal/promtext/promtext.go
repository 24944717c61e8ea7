// Package promtext writes metrics in the text format of Prometheus. It is linked into the image program only:
// its library initialises protobuf, which would slow down every command.
package promtext

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/podrun/podrun/internal/metrics"
	"github.com/podrun/podrun/internal/protocol"
)

// EntryPoints returns the entry point that encodes metrics.
func EntryPoints() map[string]func(args []string) int {
	return map[string]func([]string) int{protocol.EntryMetrics: main}
}

func main([]string) int {
	if err := encode(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "podrun: cannot encode metrics:", err)
		return 1
	}
	return 0
}

// encode reads families in JSON and writes them in the text format.
func encode(to io.Writer, from io.Reader) error {
	var families []metrics.Family
	if err := json.NewDecoder(from).Decode(&families); err != nil {
		return fmt.Errorf("decode families: %w", err)
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(to, convert(f)); err != nil {
			return fmt.Errorf("encode %s: %w", f.Name, err)
		}
	}
	return nil
}

func convert(f metrics.Family) *dto.MetricFamily {
	family := &dto.MetricFamily{Name: &f.Name, Help: &f.Help}
	for _, s := range f.Samples {
		m := &dto.Metric{}
		for i := 0; i+1 < len(s.Labels); i += 2 {
			m.Label = append(m.Label, &dto.LabelPair{Name: &s.Labels[i], Value: &s.Labels[i+1]})
		}
		switch f.Type {
		case metrics.Counter:
			family.Type, m.Counter = dto.MetricType_COUNTER.Enum(), &dto.Counter{Value: &s.Value}
		default:
			family.Type, m.Gauge = dto.MetricType_GAUGE.Enum(), &dto.Gauge{Value: &s.Value}
		}
		family.Metric = append(family.Metric, m)
	}
	return family
}
