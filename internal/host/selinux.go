package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/opencontainers/selinux/go-selinux"
	"github.com/opencontainers/selinux/go-selinux/label"
)

// SELinux describes the security module for containers of this user.
type SELinux struct {
	Enabled   bool
	Enforcing bool // otherwise violations of the policy are only logged

	// Labels returns the labels of a container's processes and files by the policy, changed by
	// options such as user:NAME, role:NAME, type:NAME and level:RANGE. Both are "" if the policy
	// has no container types.
	Labels func(options []string) (process, files string, err error)
	Layers func() string // returns the label of the files of images, which all containers may read

	// Try returns why containers could not have the two labels; noNewPrivileges is set for their
	// processes.
	Try func(process, files string, noNewPrivileges bool) error
}

// FindSELinux checks whether SELinux is enabled, as container runtimes do.
func FindSELinux() SELinux {
	on := selinux.GetEnabled()
	return SELinux{Enabled: on, Enforcing: on && selinux.EnforceMode() == selinux.Enforcing, Labels: label.InitLabels, Layers: selinux.ROFileLabel, Try: tryLabels}
}

func tryLabels(process, files string, noNewPrivileges bool) error {
	for _, l := range []string{process, files} {
		if selinux.SecurityCheckContext(l) != nil {
			return fmt.Errorf("the policy has no label %s", l)
		}
	}
	label, err := selinux.CurrentLabel()
	if err != nil {
		return fmt.Errorf("read this program's label: %w", err)
	}
	if selinux.EnforceMode() != selinux.Enforcing {
		return nil
	}
	may, err := allowed(label, process, "process", "transition")
	if err == nil && !may {
		return fmt.Errorf("the policy does not let processes change from %s to %s", label, process)
	}
	if err == nil {
		may, err = allowed(process, files, "file", "entrypoint")
	}
	if err == nil && !may {
		return fmt.Errorf("the policy does not let processes with %s begin with a program of %s", process, files)
	}
	if err == nil && noNewPrivileges {
		if knows, kerr := knowsNoNewPrivileges(policyFiles); kerr != nil || !knows {
			return errors.Join(fmt.Errorf("the policy lets no processes that gain no privileges (allowPrivilegeEscalation: false) change their label: it lacks nnp_nosuid_transition"), kerr)
		}
		may, err = allowed(label, process, "process2", "nnp_transition")
		if err == nil && !may {
			return fmt.Errorf("the policy does not let processes that gain no privileges (allowPrivilegeEscalation: false) change from %s to %s", label, process)
		}
	}
	return err
}

const policyFiles = "/sys/fs/selinux/"

// knowsNoNewPrivileges reports whether the kernel applies the policy, described by files, to
// processes that gain no privileges (check_nnp_nosuid in security/selinux/hooks.c). Otherwise these
// keep their label whatever the policy permits.
func knowsNoNewPrivileges(files string) (bool, error) {
	asks, err := numberIn(files + "policy_capabilities/nnp_nosuid_transition")
	if err == nil && asks != 0 {
		_, err = numberIn(files + "class/process2/index")
	}
	if errors.Is(err, fs.ErrNotExist) { // an old kernel, or an old policy
		return false, nil
	}
	return err == nil && asks != 0, err
}

// allowed queries the policy whether processes with a label may do something with an object of
// another, through the file that libselinux's security_compute_av uses.
func allowed(from, to, class, permission string) (bool, error) {
	number, err := numberIn(policyFiles + "class/" + class + "/index")
	if err != nil {
		return false, err
	}
	bit, err := numberIn(policyFiles + "class/" + class + "/perms/" + permission)
	if err != nil {
		return false, err
	}
	f, err := os.OpenFile(policyFiles+"access", os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s %s %d ffffffff", from, to, number); err != nil {
		return false, err
	}
	answer := make([]byte, 256)
	n, err := f.Read(answer)
	if err != nil {
		return false, err
	}
	return allows(string(answer[:n]), bit)
}

// allows parses the kernel's answer: allowed, decided, audited in two ways, a sequence number, and
// flags, the first of which marks permissive labels.
func allows(answer string, permission int) (bool, error) {
	var allowed, decided, auditAllow, auditDeny, flags uint64
	var seq int
	if _, err := fmt.Sscanf(answer, "%x %x %x %x %d %x", &allowed, &decided, &auditAllow, &auditDeny, &seq, &flags); err != nil || permission < 1 {
		return false, errors.Join(fmt.Errorf("the kernel's answer about labels is %q", answer), err)
	}
	return allowed>>(permission-1)&1 == 1 || flags&1 == 1, nil
}

func numberIn(file string) (int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}
