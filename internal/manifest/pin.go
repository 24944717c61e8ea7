package manifest

import (
	"errors"

	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/manifest/decode"
	"github.com/podrun/podrun/internal/report"
)

// PinImages replaces the references of images in manifests, of any kind, and in compose files: those of containers and of
// image volumes. Every other byte stays, and so do texts that are no manifests. pin returns what to write for a reference,
// and is called once for each.
func PinImages(file string, data []byte, pin func(reference string) (string, error)) ([]byte, error) {
	pinned := map[string]string{}
	out, err := decode.ReplaceImages(file, data, api.IsComposeFile(data), func(reference string) (string, error) {
		if known, ok := pinned[reference]; ok {
			return known, nil
		}
		text, err := pin(reference)
		pinned[reference] = text
		return text, err
	})
	if mistake := (*Error)(nil); errors.As(err, &mistake) {
		err = report.New(report.Usage, "", "%w", err)
	}
	return out, err
}
