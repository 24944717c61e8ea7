package podstats

import "time"

// JSON returns what -o json prints.
func (u *Usage) JSON() UsageJSON {
	s := u.Sample
	out := UsageJSON{Name: u.Name, CPU: u.CPU, Memory: s.Memory, Pids: s.Pids, Read: s.Read, Written: s.Written}
	if s.CPU != nil {
		out.CPUTotal = new(s.CPU.Seconds())
	}
	if p := (pressureJSON{s.Pressure.CPU, s.Pressure.Memory, s.Pressure.IO}); p != (pressureJSON{}) {
		out.Pressure = &p
	}
	if l := (limitsJSON{s.Limits.CPU, s.Limits.Memory, s.Limits.Pids}); l != (limitsJSON{}) {
		out.Limits = &l
	}
	if u.Name == "" {
		out.Namespace, out.Name = u.Pod.Namespace, u.Pod.Name
		out.Time = new(s.At.UTC())
	}
	for i := range u.Containers {
		out.Containers = append(out.Containers, u.Containers[i].JSON())
	}
	return out
}

// UsageJSON is the usage of a pod or a container for -o json. Unknown values are left out.
type UsageJSON struct {
	Namespace  string        `json:"namespace,omitempty"`
	Name       string        `json:"name"`
	Time       *time.Time    `json:"time,omitempty"`
	CPU        *int64        `json:"cpuMillicores,omitempty"`
	CPUTotal   *float64      `json:"cpuSecondsTotal,omitempty"`
	Memory     *int64        `json:"memoryWorkingSetBytes,omitempty"`
	Pids       *int64        `json:"pids,omitempty"`
	Read       *int64        `json:"readBytesTotal,omitempty"`
	Written    *int64        `json:"writtenBytesTotal,omitempty"`
	Pressure   *pressureJSON `json:"pressureSomeAvg10,omitempty"`
	Limits     *limitsJSON   `json:"limits,omitempty"`
	Containers []UsageJSON   `json:"containers,omitempty"`
}

type pressureJSON struct {
	CPU    *float64 `json:"cpu,omitempty"`
	Memory *float64 `json:"memory,omitempty"`
	IO     *float64 `json:"io,omitempty"`
}

type limitsJSON struct {
	CPU    *int64 `json:"cpuMillicores,omitempty"`
	Memory *int64 `json:"memoryBytes,omitempty"`
	Pids   *int64 `json:"pids,omitempty"`
}
