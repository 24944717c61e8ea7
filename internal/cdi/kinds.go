package cdi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// Kind is the devices of one vendor.com/class.
type Kind struct {
	Name    string
	Devices []string // their names, numbers in the order of their values
	Files   []string // the specifications
	// Units has one name for each device that a pod can request by number. Several names with the same
	// device nodes are one device; the first in the order of Devices is its unit, so an index comes
	// before a UUID. A device "all" is a unit only if it is the only one.
	Units []string

	unitOf map[string]string // the unit of each name in Devices
}

// Unit returns the unit that a device is another name of; "" if it is none.
func (k *Kind) Unit(device string) string { return k.unitOf[device] }

// Kinds returns the kinds of devices that the specifications in dirs describe, by name; a later
// directory overrides an earlier one. The error names every unreadable specification.
func Kinds(dirs []string) ([]Kind, error) {
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dirs...), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, fmt.Errorf("read descriptions of devices: %w", err)
	}
	byName := map[string]*Kind{}
	nodes := map[string]string{} // device nodes, by qualified name
	for _, qualified := range cache.ListDevices() {
		d := cache.GetDevice(qualified)
		name, _, _ := strings.Cut(qualified, "=")
		k := byName[name]
		if k == nil {
			k = &Kind{Name: name, unitOf: map[string]string{}}
			byName[name] = k
		}
		k.Devices = append(k.Devices, d.Name)
		if file := d.GetSpec().GetPath(); !slices.Contains(k.Files, file) {
			k.Files = append(k.Files, file)
		}
		nodes[qualified] = deviceNodes(d)
	}
	var kinds []Kind
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		k := byName[name]
		slices.SortFunc(k.Devices, compareNames)
		slices.Sort(k.Files)
		k.findUnits(nodes)
		kinds = append(kinds, *k)
	}
	return kinds, errors.Join(specErrors(cache)...)
}

// deviceNodes returns the sorted device nodes of a device's own edits.
func deviceNodes(d *cdi.Device) string {
	var paths []string
	for _, n := range d.ContainerEdits.DeviceNodes {
		paths = append(paths, cmp.Or(n.HostPath, n.Path))
	}
	slices.Sort(paths)
	return strings.Join(paths, "\n")
}

func (k *Kind) findUnits(nodes map[string]string) {
	first := map[string]string{}
	for _, name := range k.Devices {
		if name == "all" && len(k.Devices) > 1 {
			continue
		}
		same := nodes[k.Name+"="+name]
		if first[same] == "" || same == "" {
			first[same] = name
			k.Units = append(k.Units, name)
		}
		k.unitOf[name] = first[same]
	}
}

// compareNames compares names with numbers in them by the values of the numbers.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		na, nb := leadingDigits(a), leadingDigits(b)
		if na > 0 && nb > 0 {
			x, _ := strconv.ParseUint(a[:na], 10, 64) // names that overflow are in any order
			y, _ := strconv.ParseUint(b[:nb], 10, 64)
			if x != y {
				return cmp.Compare(x, y)
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
