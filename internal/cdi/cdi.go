// Package cdi reads the container edits of host devices from files of the Container Device
// Interface. They describe device nodes, mounts, variables and hooks by a device's name,
// vendor.com/class=name.
package cdi

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/specs-go"
)

// Edits are what a container receives for its devices.
type Edits struct {
	Env     []string // KEY=value; a later one overrides an earlier one
	Devices []Device
	Mounts  []Mount
	Hooks   []Hook
	Groups  []uint32 // additional groups of its process
}

// Device is a device node.
type Device struct {
	Host, Path string // on the host and in the container
	Block      bool   // otherwise a character device
}

// Mount is a file or directory of the host. Options are as for mount(8).
type Mount struct {
	Host, Path string
	Options    []string
}

// Hook is a program of the host that runs at a moment of the container's life; the moment is
// named as in the OCI runtime specification.
type Hook struct {
	Name, Path string
	Args, Env  []string
	Timeout    int // in seconds; 0: none
}

// SpecDirs returns the directories of the specifications for all users: /etc/cdi and /var/run/cdi.
func SpecDirs() []string { return slices.Clone(cdi.DefaultSpecDirs) }

// Find returns the edits of devices by their names, in their order, from the specifications in
// dirs; a later directory overrides an earlier one. The error names each device without
// specification, with the errors of the specifications, and each unsupported part of a
// specification.
func Find(dirs, names []string) (*Edits, error) {
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dirs...), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, fmt.Errorf("read descriptions of devices: %w", err)
	}
	var errs []error
	e := &Edits{}
	common := map[*cdi.Spec]bool{}
	for _, name := range names {
		d := cache.GetDevice(name)
		if d == nil {
			errs = append(errs, unknownDevice(cache, name))
			continue
		}
		var parts []*specs.ContainerEdits
		if s := d.GetSpec(); !common[s] {
			common[s] = true
			parts = append(parts, &s.ContainerEdits)
		}
		for _, part := range append(parts, &d.ContainerEdits) {
			if err := e.add(part); err != nil {
				errs = append(errs, fmt.Errorf("device %s: %w", name, err))
			}
		}
	}
	return e, errors.Join(errs...)
}

// unknownDevice returns the error for a device without specification.
func unknownDevice(cache *cdi.Cache, name string) error {
	return errors.Join(append([]error{fmt.Errorf("no file describes the device %s", name)}, specErrors(cache)...)...)
}

// specErrors returns the errors of specifications, with their paths.
func specErrors(cache *cdi.Cache) (errs []error) {
	files := cache.GetErrors()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		for _, err := range files[path] {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
	}
	return errs
}

func (e *Edits) add(from *specs.ContainerEdits) error {
	if len(from.NetDevices) > 0 || from.IntelRdt != nil {
		return errors.New("its description has netDevices or intelRdt, which require root")
	}
	e.Env = append(e.Env, from.Env...)
	e.Groups = append(e.Groups, from.AdditionalGIDs...)
	for _, n := range from.DeviceNodes {
		d := Device{Host: n.HostPath, Path: n.Path}
		if d.Host == "" {
			d.Host = n.Path
		}
		st, err := os.Stat(d.Host)
		if err != nil {
			return err
		}
		if st.Mode()&os.ModeDevice == 0 {
			return fmt.Errorf("%s is not a device", d.Host)
		}
		d.Block = st.Mode()&os.ModeCharDevice == 0
		e.Devices = append(e.Devices, d)
	}
	for _, m := range from.Mounts {
		if m.Type != "" && m.Type != "bind" {
			return fmt.Errorf("its description has a mount of type %s: only bind is supported", m.Type)
		}
		if _, err := os.Stat(m.HostPath); err != nil {
			return err
		}
		e.Mounts = append(e.Mounts, Mount{Host: m.HostPath, Path: m.ContainerPath, Options: m.Options})
	}
	for _, h := range from.Hooks {
		hook := Hook{Name: h.HookName, Path: h.Path, Args: h.Args, Env: h.Env}
		if h.Timeout != nil {
			hook.Timeout = *h.Timeout
		}
		e.Hooks = append(e.Hooks, hook)
	}
	return nil
}
