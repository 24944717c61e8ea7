package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile replaces path so that after a power cut it holds either the old or the new content:
// temporary file, fsync, rename, fsync of the directory.
func WriteFile(path string, data []byte) error {
	return writeDurable(path, data, 0o600)
}

// WriteExecutable is WriteFile for a program that is never written again.
func WriteExecutable(path string, data []byte) error { return writeDurable(path, data, 0o555) }

func writeDurable(path string, data []byte, mode os.FileMode) error {
	if err := replace(path, data, mode, true); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// WritePublic is WriteFile for a world-readable file.
func WritePublic(path string, data []byte) error { return writeDurable(path, data, 0o644) }

// WriteVolatile replaces path atomically for readers, without a sync: for tmpfs.
func WriteVolatile(path string, data []byte) error {
	return replace(path, data, 0o600, false)
}

// writeJSON replaces path by a value in JSON, with WriteFile or WriteVolatile.
func writeJSON(write func(path string, data []byte) error, path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	return write(path, b)
}

func replace(path string, data []byte, mode os.FileMode, sync bool) (err error) {
	base := filepath.Base(path)
	f, err := os.CreateTemp(filepath.Dir(path), "."+base[:min(len(base), 200)]+".*") // a name has up to 255 bytes
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err = f.Chmod(mode); err == nil {
		_, err = f.Write(data)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
