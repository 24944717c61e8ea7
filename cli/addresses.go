package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/report"
)

// manifestEndings are those of the files of a directory that are manifests, as kubectl
// has them.
var manifestEndings = []string{".json", ".yaml", ".yml"}

// inDirectories puts in the place of each directory its manifests, in the order of their
// names.
func inDirectories(files []string) (out []string, err error) {
	var errs []error
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || !info.IsDir() {
			out = append(out, file) // reading it says what is wrong
			continue
		}
		list, err := os.ReadDir(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot read the manifests: %w", err))
			continue
		}
		found := 0
		for _, e := range list {
			if !e.IsDir() && slices.Contains(manifestEndings, filepath.Ext(e.Name())) {
				out, found = append(out, filepath.Join(file, e.Name())), found+1
			}
		}
		if found == 0 {
			errs = append(errs, report.New(report.Usage, "", "there are no manifests in the directory %s: no file ends in .yaml, .yml or .json", file))
		}
	}
	return out, errors.Join(errs...)
}

func isAddress(file string) bool {
	return strings.HasPrefix(file, "http://") || strings.HasPrefix(file, "https://")
}

// downloadTime bounds how long a manifest may take to come.
const downloadTime = 30 * time.Second

// download gets what is at an address.
func download(address string) (io.ReadCloser, error) {
	client := http.Client{Timeout: downloadTime, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		switch {
		case len(via) >= 10:
			return errors.New("it was redirected ten times")
		case via[0].URL.Scheme == "https" && to.URL.Scheme != "https":
			return fmt.Errorf("it is redirected to %s, which is not protected", to.URL.Redacted())
		}
		return nil
	}}
	answer, err := client.Get(address)
	if err != nil {
		return nil, report.New(report.Failure, "", "cannot fetch the manifest: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, report.New(report.Failure, "", "cannot fetch the manifest %s: the server says %s", address, report.Escape(answer.Status))
	}
	return answer.Body, nil
}
