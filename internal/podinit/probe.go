package podinit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
)

// Probe is a probe that a prober of the pod init runs while the supervisor hibernates
// (nsenter/probe.c). Times are CLOCK_BOOTTIME.
type Probe struct {
	Next            time.Duration // of the next run
	Period, Timeout time.Duration
	Counter         int // number of the counter of its successes in the file of KeepProbes

	// A server. The zero Server stands for a command.
	Server  netip.AddrPort
	HostNet bool   // it is reached from the host's network, not the pod's
	Request string // which it has to answer by HTTP; "" if it only has to accept the connection

	// A command.
	Config    []byte   // for the exec shim
	Target    string   // name of the container
	Cgroup    string   // its path, or ""
	Args, Env []string // Args[0] is the name of the exec shim's process
}

// record is struct probe of nsenter/probe.c.
type record struct {
	Next, Last, Period, Timeout    int64
	Size, Family, NetNS            uint32
	Port, Text, Args, Env, Counter uint32
	Address                        [16]byte
}

const recordAlign = 8

// encodeProbes returns the table of probes.
func encodeProbes(probes []Probe) ([]byte, error) {
	var table []byte
	for _, p := range probes {
		r := record{Next: int64(p.Next), Period: int64(p.Period), Timeout: int64(p.Timeout), Port: uint32(p.Server.Port()), Counter: uint32(p.Counter)}
		text, strs := p.Request, []string(nil)
		switch a := p.Server.Addr().Unmap(); {
		case a.Is4():
			r.Family = unix.AF_INET
			copy(r.Address[:], a.AsSlice())
		case a.Is6():
			r.Family = unix.AF_INET6
			copy(r.Address[:], a.AsSlice())
		default:
			text, strs = string(p.Config), append([]string{protocol.KeptTarget + p.Target, p.Cgroup}, append(p.Args[:len(p.Args):len(p.Args)], p.Env...)...)
			r.Args, r.Env = uint32(len(p.Args)), uint32(len(p.Env))
		}
		if !p.HostNet {
			r.NetNS = 1
		}
		body := []byte(text)
		for _, s := range strs {
			if strings.Contains(s, "\x00") {
				return nil, errors.New("a command with a NUL")
			}
			body = append(append(body, s...), 0)
		}
		for len(body)%recordAlign != 0 {
			body = append(body, 0)
		}
		r.Text, r.Size = uint32(len(text)), uint32(binary.Size(r)+len(body))
		table, _ = binary.Append(table, binary.NativeEndian, r) // of a fixed size: it cannot fail
		table = append(table, body...)
	}
	return table, nil
}

// decodeProbes returns when each probe of a table began its latest successful run; 0: it had none.
func decodeProbes(table []byte) (last []time.Duration, err error) {
	for len(table) > 0 {
		var r record
		if _, err := binary.Decode(table, binary.NativeEndian, &r); err != nil || int(r.Size) < binary.Size(r) || int(r.Size) > len(table) {
			return nil, errors.New("the table of probes is damaged")
		}
		last = append(last, time.Duration(r.Last))
		table = table[r.Size:]
	}
	return last, nil
}

// KeepProbes makes the pod init hold what its probers need: the table of probes, the file with their counters, the exec
// shim's program, and a pidfd of the first process of each container that has commands. The file may be nil, and so may
// the program.
func (k *Client) KeepProbes(probes []Probe, counters, shim *os.File, targets map[string]*os.File) error {
	table, err := encodeProbes(probes)
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate(protocol.KeptProbes, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return fmt.Errorf("make the table of probes: %w", err)
	}
	f := os.NewFile(uintptr(fd), protocol.KeptProbes)
	defer f.Close()
	if _, err := f.Write(table); err != nil {
		return fmt.Errorf("write the table of probes: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		return fmt.Errorf("seal the table of probes: %w", err)
	}
	if err := k.KeepFD(protocol.KeptProbes, fd); err != nil {
		return err
	}
	for name, f := range map[string]*os.File{protocol.KeptCounters: counters, protocol.KeptShim: shim} {
		if f == nil {
			continue
		}
		if err := k.Keep(name, f); err != nil {
			return err
		}
	}
	for name, target := range targets {
		if err := k.Keep(protocol.KeptTarget+name, target); err != nil {
			return err
		}
	}
	return nil
}

// LatestSuccesses returns when each probe of the latest KeepProbes began its latest successful run during
// the hibernation; 0: it had none. The result is empty after a hibernation without probes.
func (i *Inherited) LatestSuccesses() ([]time.Duration, error) {
	fd, ok := i.Files[protocol.KeptProbes]
	if !ok {
		return nil, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(fd), &st); err != nil {
		return nil, fmt.Errorf("read the table of probes: %w", err)
	}
	table := make([]byte, st.Size)
	if _, err := unix.Pread(int(fd), table, 0); err != nil {
		return nil, fmt.Errorf("read the table of probes: %w", err)
	}
	return decodeProbes(table)
}
