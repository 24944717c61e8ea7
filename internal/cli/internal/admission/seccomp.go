package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/podrun/podrun/internal/report"
)

// maxProfile limits the size of a seccomp profile; Docker's own has 20 KiB.
const maxProfile = 1 << 20

// SeccompProfiles reads the user's seccomp profiles by name. Names are paths below dir, and symbolic
// links must not leave it either. The profiles become part of the pod: a changed profile applies to pods
// that are started later.
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
		return nil, errors.Join(err, errors.New("it is not a file"))
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
