package registry

import (
	"io/fs"
	"testing"
)

func TestAuthFile(t *testing.T) {
	tests := []struct {
		name       string
		uid        int
		runtimeDir string
		err        error
		want       string
	}{
		{"root", 0, "", fs.ErrPermission, ""},
		{"in a login session", 1000, "/run/user/1000", fs.ErrPermission, ""},
		{"no file", 1000, "", fs.ErrNotExist, ""},
		{"a file", 1000, "", nil, ""},
		{"closed by root", 1000, "", fs.ErrPermission, "/home/u/.config/containers/auth.json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var requested string
			got := defaultAuthFile(tt.uid, "/home/u", tt.runtimeDir, func(path string) error {
				requested = path
				return tt.err
			})
			if got != tt.want {
				t.Errorf("file %q, want %q", got, tt.want)
			}
			if requested != "" && requested != "/run/containers/1000/auth.json" {
				t.Errorf("looked at %q", requested)
			}
		})
	}
}
