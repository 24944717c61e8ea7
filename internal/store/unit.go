package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// StartSlot returns the lock of one of the slots for pods that start at the same time.
func (d Dirs) StartSlot(n int) string {
	return filepath.Join(d.Runtime, fmt.Sprintf("starting-%d.lock", n))
}

// StartTurn returns the lock of the process that looks for a free start slot.
func (d Dirs) StartTurn() string { return filepath.Join(d.Runtime, "starting.lock") }

// unitFile returns the record of a unit. It is in memory: after a reboot no unit has pods.
func (d Dirs) unitFile(unit string) (string, error) {
	if unit == "" || unit[0] == '.' || strings.ContainsRune(unit, '/') {
		return "", fmt.Errorf("%q is not a valid unit name", unit)
	}
	return filepath.Join(d.Runtime, "units", unit+".json"), nil
}

// unitPod is a pod in a unit's record.
type unitPod struct{ Namespace, Name string }

// SetUnitPods records which pods a systemd unit has; an empty list removes the record.
func (d Dirs) SetUnitPods(unit string, pods []Pod) error {
	path, err := d.unitFile(unit)
	if err != nil {
		return fmt.Errorf("record the pods of a unit: %w", err)
	}
	if len(pods) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("record the pods of unit %s: %w", unit, err)
		}
		return nil
	}
	var list []unitPod
	for _, p := range pods {
		list = append(list, unitPod{p.Namespace, p.Name})
	}
	err = os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = writeJSON(WriteVolatile, path, list)
	}
	if err != nil {
		return fmt.Errorf("record the pods of unit %s: %w", unit, err)
	}
	return nil
}

// UnitPods returns the pods of a unit; none if it has no record.
func (d Dirs) UnitPods(unit string) ([]Pod, error) {
	path, err := d.unitFile(unit)
	if err != nil {
		return nil, fmt.Errorf("find the pods of a unit: %w", err)
	}
	var list []unitPod
	if err := readJSON(path, &list); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find the pods of unit %s: %w", unit, err)
	}
	var pods []Pod
	for _, p := range list {
		pods = append(pods, d.Pod(p.Namespace, p.Name))
	}
	return pods, nil
}

// UnitOf returns the unit that a pod is recorded for, or "".
func (d Dirs) UnitOf(p Pod) (string, error) {
	files, err := filepath.Glob(filepath.Join(d.Runtime, "units", "*.json"))
	if err != nil {
		return "", fmt.Errorf("find the unit of pod %s: %w", p.Name, err)
	}
	for _, file := range files {
		unit := strings.TrimSuffix(filepath.Base(file), ".json")
		pods, err := d.UnitPods(unit)
		if err != nil {
			return "", err
		}
		for _, member := range pods {
			if member.Namespace == p.Namespace && member.Name == p.Name {
				return unit, nil
			}
		}
	}
	return "", nil
}
