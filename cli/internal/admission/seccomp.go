package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/podrun/podrun/internal/report"
)

// maxProfile bounds a seccomp profile; Docker's own has 20 KiB.
const maxProfile = 1 << 20

// SeccompProfiles reads profiles of the user's own by their names, paths below dir that
// are not left by links either. They become part of the pod: a profile that changes
// counts for pods that are started then.
func SeccompProfiles(dir string, names []string) (map[string]json.RawMessage, error) {
	profiles := map[string]json.RawMessage{}
	var errs []error
	for _, name := range names {
		text, err := seccompProfile(dir, name)
		if err != nil {
			errs = append(errs, report.New(report.Failure, "a profile is a JSON file below "+dir+", in the form of Docker or of the OCI runtime specification",
				"use seccomp profile %s: %w", name, err))
			continue
		}
		profiles[name] = text
	}
	return profiles, errors.Join(errs...)
}

func seccompProfile(dir, name string) (json.RawMessage, error) {
	file, err := os.OpenInRoot(dir, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is no file"))
	}
	text, err := io.ReadAll(io.LimitReader(file, maxProfile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxProfile {
		return nil, fmt.Errorf("it has more than %d bytes", maxProfile)
	}
	var profile struct {
		DefaultAction string `json:"defaultAction"`
	}
	if err := json.Unmarshal(text, &profile); err != nil {
		return nil, err
	}
	if profile.DefaultAction == "" {
		return nil, errors.New("it has no defaultAction")
	}
	return text, nil
}
