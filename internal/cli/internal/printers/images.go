package printers

import (
	"strings"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/pod/podrow"
)

// NoImageName is printed for a missing name or tag of an image.
const NoImageName = "<none>"

// ImageHeader returns the columns of image ls.
func ImageHeader() []string { return []string{"NAME", "ID", "ADDED", "SIZE"} }

// ImageRows returns the lines of an image under ImageHeader, one for each name.
func ImageRows(i image.Info, now time.Time) (rows [][]string) {
	for _, name := range ImageNames(i) {
		rows = append(rows, []string{name, ShortImageID(i.ID), Ago(i.Added, now), progress.Size(i.Size)})
	}
	return rows
}

// Ago returns the time from then to now, as in "5m ago".
func Ago(then, now time.Time) string { return podrow.Age(then, now) + " ago" }

// ImageNames returns the names of an image, NoImageName if it has none.
func ImageNames(i image.Info) []string {
	if len(i.Names) == 0 {
		return []string{NoImageName}
	}
	return i.Names
}

// ShortImageID returns the first 12 digits of an image's id.
func ShortImageID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}
