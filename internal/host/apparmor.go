package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// AppArmor describes the security module for containers of this user.
type AppArmor struct {
	Enabled bool
	Try     func(profile string) error // returns why a container could not change to a profile; nil if it can
}

// FindAppArmor checks whether AppArmor is enabled, as the kubelet does (IsEnabled in
// opencontainers/runc/libcontainer/apparmor).
func FindAppArmor() AppArmor {
	v := newProber(Setup{})
	on, _ := v.read("/sys/module/apparmor/parameters/enabled")
	return AppArmor{Enabled: on == "Y" && v.exists("/sys/kernel/security/apparmor"), Try: tryAppArmor}
}

// tryAppArmor requests a profile as a container's first process does, on a thread that ends without
// executing a program.
func tryAppArmor(profile string) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		result <- askAppArmor(profile)
	}()
	switch err := <-result; {
	case errors.Is(err, unix.ENOENT):
		return errors.New("it is not loaded")
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return errors.New("this user's programs may not change to it")
	default:
		return err
	}
}

func askAppArmor(profile string) error {
	for _, file := range []string{"attr/apparmor/exec", "attr/exec"} {
		f, err := os.OpenFile("/proc/thread-self/"+file, os.O_WRONLY, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString("exec " + profile)
		return err
	}
	return fmt.Errorf("ask for it: %w", unix.ENOTSUP)
}
