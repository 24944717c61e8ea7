// Package filter compiles each seccomp profile once. libcontainer would compile it in every process that it
// makes, which takes longer than the rest of a start. The result is identical to libcontainer's, and is stored in
// memory-backed storage.
package filter

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/seccomp"

	"github.com/podrun/podrun/internal/execshim"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/store"
)

// Compilable reports whether a profile is only a filter. libcontainer must load a profile with
// SECCOMP_RET_USER_NOTIF: it passes the notification descriptor on.
func Compilable(c *configs.Seccomp) bool {
	return c.DefaultAction != configs.Notify && !slices.ContainsFunc(c.Syscalls, func(s *configs.Syscall) bool { return s != nil && s.Action == configs.Notify })
}

// Key returns the name of a compiled profile. It depends on the profile, on the compiler, and on the
// machine.
func Key(c *configs.Seccomp) (string, error) {
	profile, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encode seccomp profile: %w", err)
	}
	major, minor, micro := seccomp.Version()
	h := sha256.New()
	fmt.Fprintf(h, "%s %d.%d.%d %s\n", runtime.GOARCH, major, minor, micro, runcVersion())
	h.Write(profile)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// runcVersion returns libcontainer's version.
var runcVersion = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == "github.com/opencontainers/runc" {
			return d.Version
		}
	}
	return ""
})

// LoadCompiled returns the compiled filter that a directory holds under its Key. The error is fs.ErrNotExist if
// there is none, or only an incomplete one.
func LoadCompiled(dir, key string) (execshim.Filter, error) {
	b, err := os.ReadFile(filepath.Join(dir, key))
	if err != nil {
		return execshim.Filter{}, err
	}
	if len(b) < sha256.Size || sha256.Sum256(b[sha256.Size:]) != [sha256.Size]byte(b) {
		return execshim.Filter{}, fmt.Errorf("%s is damaged: %w", filepath.Join(dir, key), os.ErrNotExist)
	}
	return decode(b[sha256.Size:])
}

// Make compiles a profile and stores the result. If the directory has no space, the filter is compiled
// again next time.
func Make(dir, key string, c *configs.Seccomp) (execshim.Filter, error) {
	b, err := compile(c)
	if err != nil {
		return execshim.Filter{}, fmt.Errorf("compile seccomp profile: %w", err)
	}
	f, err := decode(b)
	if err != nil {
		return f, fmt.Errorf("compile seccomp profile: %w", err)
	}
	sum := sha256.Sum256(b)
	if err = os.MkdirAll(dir, 0o700); err == nil {
		err = store.WriteVolatile(filepath.Join(dir, key), append(sum[:], b...))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "keep a compiled seccomp profile:", err)
	}
	return f, nil
}

const headSize = 8 // flags and number of instructions

func decode(b []byte) (f execshim.Filter, err error) {
	if len(b) < headSize {
		return f, errors.New("nothing was compiled")
	}
	f.Flags, f.Program = binary.NativeEndian.Uint32(b), b[headSize:]
	n := int(binary.NativeEndian.Uint32(b[4:]))
	if n < 1 || n > protocol.MaxShimFilter || len(f.Program) != n*execshim.FilterStep {
		return execshim.Filter{}, fmt.Errorf("a filter of %d steps has %d bytes", n, len(f.Program))
	}
	return f, nil
}

// compile runs EntryFilter and returns its output.
func compile(c *configs.Seccomp) ([]byte, error) {
	profile, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := reexec.Command(reexec.Spec{Name: protocol.EntryFilter})
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = bytes.NewReader(profile), &stderr
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return b, nil
}

// Main is the entry point EntryFilter: it reads a profile and writes the filter that libcontainer makes of it.
func Main([]string) int {
	var c configs.Seccomp
	b, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err == nil {
		err = capture()
	}
	if err == nil {
		_, err = seccomp.InitSeccomp(&c) // ends this process at the point where it would load the filter
	}
	if err == nil {
		err = errors.New("the filter was not captured")
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
