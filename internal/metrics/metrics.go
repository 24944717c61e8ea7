// Package metrics has metrics in the terms of Prometheus, as the CLI passes them to the image program, which
// links the encoder.
//
// The CLI starts the program with a list of Families in JSON at its standard input, and reads their text from
// its standard output.
package metrics

// Type is the type of a metric.
type Type string

// The types of metrics.
const (
	Counter Type = "counter"
	Gauge   Type = "gauge"
)

// Desc describes a metric.
type Desc struct {
	Name, Help string
	Type       Type
}

// Family is a metric with its samples.
type Family struct {
	Desc
	Samples []Sample
}

// Sample is a value of a metric. Labels are names, each followed by its value.
type Sample struct {
	Labels []string
	Value  float64
}

// Set collects families.
type Set struct {
	Families []Family
	index    map[string]int // by name
}

// Add adds a sample.
func (s *Set) Add(d Desc, value float64, labels ...string) {
	i, ok := s.index[d.Name]
	if !ok {
		if s.index == nil {
			s.index = map[string]int{}
		}
		i = len(s.Families)
		s.index[d.Name] = i
		s.Families = append(s.Families, Family{Desc: d})
	}
	s.Families[i].Samples = append(s.Families[i].Samples, Sample{labels, value})
}
