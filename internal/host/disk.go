package host

import "fmt"

// Thresholds of free space: less than the first of each is a note, less than the second a warning.
// An image takes some hundred megabytes and some ten thousand files.
const (
	noteFreeBytes, warnFreeBytes   = 1 << 30, 200 << 20
	noteFreeInodes, warnFreeInodes = 100_000, 10_000
)

// space checks the free space for images, volumes and logs.
func (v prober) space() Finding {
	f, here := v.usable(v.Data, "XDG_DATA_HOME")
	if here == nil {
		return f.unknown()
	}
	hint := "podrun image rm and podrun down free some; or set XDG_DATA_HOME to a larger file system"
	detail := fmt.Sprintf("%s of %s are free for %s", formatBytes(here.Free), formatBytes(here.Size), v.Data)
	switch {
	case here.Free < warnFreeBytes:
		return warningFinding(detail+": most images do not fit", hint)
	case here.Free < noteFreeBytes:
		return noteFinding(detail, hint)
	}
	return okFinding(detail)
}

// inodes checks the free inodes: a file system may run out of them with space left.
func (v prober) inodes() Finding {
	f, here := v.usable(v.Data, "XDG_DATA_HOME")
	if here == nil {
		return f.unknown()
	}
	if here.Files == 0 {
		return okFinding(here.Kind + " has no fixed number of files")
	}
	hint := "remove directories of many small files: df -i shows the file systems; podrun image rm frees some"
	detail := fmt.Sprintf("%d of %d files are free for %s", here.FreeFiles, here.Files, v.Data)
	switch {
	case here.FreeFiles < warnFreeInodes:
		return warningFinding(detail+": most images do not fit", hint)
	case here.FreeFiles < noteFreeInodes && here.FreeFiles < here.Files/10:
		return noteFinding(detail, hint)
	}
	return okFinding(detail)
}

// unknown returns the finding of a probe that could not run because of f, which another probe
// reports itself.
func (f Finding) unknown() Finding { return warningFinding("not known: "+f.Detail, f.Hint) }

// formatBytes formats a number of bytes for users.
func formatBytes(bytes uint64) string {
	switch {
	case bytes >= 10<<30:
		return fmt.Sprintf("%d GiB", bytes>>30)
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
